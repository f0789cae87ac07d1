package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// caKey is the key of a Secret with the certificates of the CA, as cert-manager writes it.
const caKey = corev1.ServiceAccountRootCAKey

// A Server is how clients verify a server.
type Server struct {
	// Name is a DNS name in its certificate.
	Name string
	// Bundle has the certificates to trust, as PEM.
	Bundle string
	// Expires is when the served certificate expires.
	Expires time.Time
}

// Server returns how clients verify a server that serves the set under a name.
func (s Set) Server(name string, now time.Time) (Server, error) {
	expires := s.Current.expiry([]string{name})
	if !now.Before(expires) {
		return Server{}, fmt.Errorf("it has no valid certificate for %s", name)
	}
	return Server{Name: name, Bundle: string(s.Bundle(now)), Expires: expires}, nil
}

// Given returns how clients verify a server whose certificate comes from elsewhere: from a Secret with tls.crt, tls.key
// and, unless the certificates in tls.crt are to be trusted themselves, ca.crt. Its name is preferred; if the
// certificate does not have it, it is the first one that the certificate has. Errors are shown to the user.
func Given(data map[string][]byte, preferred string, now time.Time) (Server, error) {
	pair := Pair{data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]}
	loaded, err := pair.Load()
	if err != nil {
		return Server{}, fmt.Errorf("tls.crt and tls.key are not a certificate and its key: %w", err)
	}
	server := Server{Name: preferred, Bundle: string(data[caKey]), Expires: loaded.Leaf.NotAfter}
	if server.Bundle == "" {
		server.Bundle = string(pair.Certificate)
	}
	if loaded.Leaf.VerifyHostname(preferred) != nil {
		if len(loaded.Leaf.DNSNames) == 0 {
			return Server{}, errors.New("the certificate has no DNS name")
		}
		// Any name that a wildcard covers is as good as another: it is not resolved.
		server.Name = strings.Replace(loaded.Leaf.DNSNames[0], "*", "slurmrestd", 1)
	}
	return server, server.verify(loaded, now)
}

// verify returns why clients would not accept a certificate.
func (s Server) verify(served *tls.Certificate, now time.Time) error {
	if !now.Before(s.Expires) {
		return fmt.Errorf("the certificate expired at %s", s.Expires.UTC().Format(time.RFC3339))
	}
	roots, err := s.roots()
	if err != nil {
		return err
	}
	intermediates := x509.NewCertPool()
	for _, each := range served.Certificate[1:] {
		parsed, err := x509.ParseCertificate(each)
		if err != nil {
			return fmt.Errorf("reading the chain in tls.crt: %w", err)
		}
		intermediates.AddCert(parsed)
	}
	_, err = served.Leaf.Verify(x509.VerifyOptions{
		DNSName: s.Name, Roots: roots, Intermediates: intermediates, CurrentTime: now,
	})
	return err
}

func (s Server) roots() (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(s.Bundle)) {
		return nil, errors.New("ca.crt has no certificate")
	}
	return roots, nil
}

// Client returns the settings of a client that accepts only this server.
func (s Server) Client() (*tls.Config, error) {
	roots, err := s.roots()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: s.Name}, nil
}
