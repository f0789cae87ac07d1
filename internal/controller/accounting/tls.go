package accounting

import (
	"crypto/tls"
	"crypto/x509"
	"path"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/invalid"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// A tlsSource is where a file for TLS to the database comes from.
type tlsSource struct {
	// file is its name in slurmdbd's configuration directory, and field the field that references it.
	file, field string
	// Either secret or configMap is set.
	secret    *slinkyv1beta1.SecretKeyReference
	configMap *slinkyv1beta1.ConfigMapKeyReference
}

// Names of the files.
var (
	caFile          = path.Base(slurmconf.DatabaseCAFile)
	certificateFile = path.Base(slurmconf.DatabaseCertificateFile)
	keyFile         = path.Base(slurmconf.DatabaseKeyFile)
)

// tlsSources returns where the files come from, in a fixed order; none without TLS.
func tlsSources(tls *slinkyv1beta1.StorageTLS) []tlsSource {
	if tls == nil {
		return nil
	}
	const field = "spec.storageConfig.tls."
	var sources []tlsSource
	if ca := tls.CASecretRef; ca != nil {
		sources = append(sources, tlsSource{file: caFile, field: field + "caSecretRef", secret: ca})
	} else if ca := tls.CAConfigMapRef; ca != nil { // the schema requires one of the two
		sources = append(sources, tlsSource{file: caFile, field: field + "caConfigMapRef", configMap: ca})
	}
	if client := tls.ClientCertificateRef; client != nil {
		for _, part := range []struct{ file, key string }{
			{certificateFile, corev1.TLSCertKey}, {keyFile, corev1.TLSPrivateKeyKey},
		} {
			sources = append(sources, tlsSource{
				file: part.file, field: field + "clientCertificateRef",
				secret: &slinkyv1beta1.SecretKeyReference{Name: client.Name, Key: part.key},
			})
		}
	}
	return sources
}

// missing returns the message that a file does not exist.
func (s tlsSource) missing() string {
	if s.secret != nil {
		return reference.Missing(s.field, "Secret", s.secret.Name, s.secret.Key)
	}
	return reference.Missing(s.field, "ConfigMap", s.configMap.Name, s.configMap.Key)
}

// projection returns the part of a volume that holds the file.
func (s tlsSource) projection() corev1.VolumeProjection {
	if s.secret != nil {
		return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: s.secret.Name},
			Items:                []corev1.KeyToPath{{Key: s.secret.Key, Path: s.file}},
		}}
	}
	return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: s.configMap.Name},
		Items:                []corev1.KeyToPath{{Key: s.configMap.Key, Path: s.file}},
	}}
}

// checkTLS returns an error if the files are such that slurmdbd could not use them. It would not start with them, while
// the one that runs still has the files from before.
func checkTLS(scope *scope) error {
	sources := tlsSources(scope.accounting.Spec.StorageConfig.TLS)
	if len(sources) == 0 {
		return nil
	}
	if !x509.NewCertPool().AppendCertsFromPEM(scope.tls[caFile]) {
		return invalid.New(sources[0].field, "there is no certificate in it; put the certificates of the CA there, in PEM")
	}
	if len(sources) == 1 {
		return nil
	}
	if _, err := tls.X509KeyPair(scope.tls[certificateFile], scope.tls[keyFile]); err != nil {
		// The error does not contain the key.
		return invalid.New(sources[1].field, "tls.crt and tls.key are not a certificate and its key (%w); put a matching "+
			"pair there, in PEM", err)
	}
	return nil
}
