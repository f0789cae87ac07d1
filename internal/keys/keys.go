// Package keys generates keys for clusters whose spec names none.
//
// A generated key is stored in a Secret without ownerReferences: it survives deletion of its Controller or Accounting,
// so that a re-created one finds the key that its nodes and clients use.
package keys

import (
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// Sizes of the keys in bytes.
const (
	slurmKeySize = 1024
	jwtKeySize   = 32 // as long as the hash of HS256
)

// Slurm returns a Secret with a new key for auth/slurm at the reference.
func Slurm(namespace string, reference slinkyv1beta1.SecretKeyReference) *corev1.Secret {
	return secret(namespace, reference, slurmKeySize)
}

// JWT returns a Secret with a new HS256 key for auth/jwt at the reference.
func JWT(namespace string, reference slinkyv1beta1.SecretKeyReference) *corev1.Secret {
	return secret(namespace, reference, jwtKeySize)
}

// Lost returns what to do about a key of auth/slurm that was deleted while daemons use it. The operator generates no
// new key: the daemons would reject each other.
func Lost(reference slinkyv1beta1.SecretKeyReference) string {
	return fmt.Sprintf(
		"Secret %s was deleted, with the key that authenticates the daemons; they keep running, but nothing new "+
			"can start: "+
			"put the key back, which running pods still have, as docs/keys.md says", reference.Name)
}

func secret(namespace string, reference slinkyv1beta1.SecretKeyReference, size int) *corev1.Secret {
	key := make([]byte, size)
	_, _ = rand.Read(key) // never fails
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: reference.Name,
			Labels: map[string]string{naming.LabelManagedBy: naming.ManagedBy},
		},
		Data: map[string][]byte{reference.Key: key},
	}
}
