// Package keys makes the keys of clusters that are given none.
//
// A generated key is kept in a Secret that nobody owns: it outlives what it was made for, so that a Controller or an
// Accounting that is made anew finds the key that its nodes and its clients have.
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

// Slurm is a Secret with a new key of auth/slurm, where reference says.
func Slurm(namespace string, reference slinkyv1beta1.SecretKeyReference) *corev1.Secret {
	return secret(namespace, reference, slurmKeySize)
}

// JWT is a Secret with a new HS256 key of auth/jwt, where reference says.
func JWT(namespace string, reference slinkyv1beta1.SecretKeyReference) *corev1.Secret {
	return secret(namespace, reference, jwtKeySize)
}

// Lost says what to do about a key of auth/slurm that is gone while daemons run with it. Nobody makes another one: they would
// refuse each other.
func Lost(reference slinkyv1beta1.SecretKeyReference) string {
	return fmt.Sprintf("Secret %s was deleted, with the key by which the daemons believe each other; they go on, but nothing new can start: "+
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
