package keys_test

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/keys"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

func TestGeneratedKeysAreRandomAndStoredByReference(t *testing.T) {
	tests := map[string]struct {
		reference slinkyv1beta1.SecretKeyReference
		generate  func(string, slinkyv1beta1.SecretKeyReference) *corev1.Secret
		size      int
	}{
		"auth/slurm": {naming.GeneratedSlurmKey("slurm"), keys.Slurm, 1024},
		"auth/jwt":   {naming.GeneratedJWTKey("slurm"), keys.JWT, 32},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			secret, other := test.generate("hpc", test.reference), test.generate("hpc", test.reference)
			key := secret.Data[test.reference.Key]
			if secret.Namespace != "hpc" || secret.Name != test.reference.Name || len(key) != test.size {
				t.Errorf("%s/%s has a key of %d bytes under %s", secret.Namespace, secret.Name, len(key),
					test.reference.Key)
			}
			if bytes.Equal(key, other.Data[test.reference.Key]) {
				t.Error("the same key was generated twice")
			}
			if len(secret.OwnerReferences) > 0 {
				t.Error("the key would be deleted together with its owner")
			}
		})
	}
}
