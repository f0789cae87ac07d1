// Package certificate manages the serving certificate of the webhook, without depending on anything else in the
// cluster.
//
// Certificates are self-signed, so there is no CA key to manage. One Secret holds the current certificate, its
// successor before it is served, and its predecessor afterwards; the webhook configurations trust all of them. Each
// replica repeats the same loop: read the Secret; if a rotation step is due, take it and write the Secret, which
// succeeds for only one replica; update the configurations to trust the certificates in the Secret; serve the current
// one.
//
// A successor is generated when a third of the lifetime is left and served when a sixth is left, so that every API
// server trusts it by then. The predecessor stays trusted until it expires, so that a late replica is trusted too.
package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// skew is the clock skew that a new certificate tolerates.
const skew = 5 * time.Minute

// A pair is a certificate and its key, as PEM.
type pair struct{ certificate, key []byte }

// newPair generates a self-signed certificate for a name.
func newPair(name string, now time.Time, lifetime time.Duration) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return pair{}, fmt.Errorf("choosing a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{name},
		NotBefore:    now.Add(-skew),
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return pair{}, fmt.Errorf("signing the certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, fmt.Errorf("encoding the key: %w", err)
	}
	return pair{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

// load returns a pair as a TLS certificate.
func (p pair) load() (*tls.Certificate, error) {
	loaded, err := tls.X509KeyPair(p.certificate, p.key)
	return &loaded, err
}

// remaining returns how long the pair can be served under a name; 0 if it cannot.
func (p pair) remaining(name string, now time.Time) time.Duration {
	loaded, err := p.load()
	if err != nil || loaded.Leaf.VerifyHostname(name) != nil {
		return 0
	}
	return max(loaded.Leaf.NotAfter.Sub(now), 0)
}

// parse parses one certificate.
func parse(certificate []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(certificate)
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("this is not one certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}
