// Package served provides the certificate of a RestApi to servers that take the place of slurmrestd in tests.
package served

import (
	"crypto/tls"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/certificate"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// Certificate returns TLS settings that serve the certificate in the Secret of a RestApi, as its pods do. It is read
// for each connection.
func Certificate(reader client.Reader, restAPI client.ObjectKey) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			owner, secret := &slinkyv1beta1.RestApi{}, &corev1.Secret{}
			if err := reader.Get(hello.Context(), restAPI, owner); err != nil {
				return nil, err
			}
			if err := reader.Get(hello.Context(), client.ObjectKey{
				Namespace: restAPI.Namespace, Name: naming.RestAPICertificate(owner),
			}, secret); err != nil {
				return nil, err
			}
			return certificate.ReadSet(secret.Data).Current.Load()
		},
	}
}
