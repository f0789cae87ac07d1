package sshd

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// rsaBits is the size of the RSA key, as with ssh-keygen.
const rsaBits = 3072

// NewHostKeys returns a Secret with new host keys of the types that ssh-keygen -A generates, under the same file names.
// It includes the public keys for known_hosts files.
func NewHostKeys(namespace, name string) (*corev1.Secret, error) {
	_, ed25519Key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a host key: %w", err)
	}
	ecdsaKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a host key: %w", err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, rsaBits)
	if err != nil {
		return nil, fmt.Errorf("making a host key: %w", err)
	}
	data := map[string][]byte{}
	for kind, key := range map[string]crypto.Signer{"ed25519": ed25519Key, "ecdsa": ecdsaKey, "rsa": rsaKey} {
		private, err := ssh.MarshalPrivateKey(key, namespace+"/"+name)
		if err != nil {
			return nil, fmt.Errorf("writing a host key: %w", err)
		}
		public, err := ssh.NewPublicKey(key.Public())
		if err != nil {
			return nil, fmt.Errorf("writing a host key: %w", err)
		}
		file := "ssh_host_" + kind + "_key"
		data[file] = pem.EncodeToMemory(private)
		data[file+".pub"] = ssh.MarshalAuthorizedKey(public)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{naming.LabelManagedBy: naming.ManagedBy},
		},
		Data: data,
	}, nil
}

// PrivateKeys returns the names of the private keys in a Secret of host keys. An administrator may have created it with
// existing keys.
func PrivateKeys(hostKeys *corev1.Secret) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(hostKeys.Data)), func(name string) bool {
		return !strings.HasPrefix(name, "ssh_host_") || !strings.HasSuffix(name, "_key")
	})
}
