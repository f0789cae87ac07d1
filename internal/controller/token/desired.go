package token

import (
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// secret returns the Secret that holds the token. It is immutable if the token is not renewed.
func secret(token *slinkyv1beta1.Token, text string) *applycorev1.SecretApplyConfiguration {
	kept := naming.TokenSecret(token)
	secret := applycorev1.Secret(kept.Name, token.Namespace).
		WithLabels(map[string]string{naming.LabelManagedBy: naming.ManagedBy}).
		WithData(map[string][]byte{kept.Key: []byte(text)})
	if refresh := token.Spec.Refresh; refresh != nil && !*refresh {
		secret.WithImmutable(true)
	}
	return secret
}
