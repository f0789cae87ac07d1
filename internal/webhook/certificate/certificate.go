// Package certificate keeps the certificate that the webhook is served with, without help from anything else in the cluster.
//
// A certificate vouches for itself: nobody has to keep the key of an authority. One Secret holds the certificate that is served,
// its successor before it is served, and its predecessor after that; the webhook configurations trust all of them. Each replica
// goes through the same round again and again: read the Secret; if it is time, take the step that is due and write the Secret,
// which fails for all replicas but one; make the configurations trust what the Secret holds; serve what it says.
//
// A successor is made when a third of the lifetime is left and served when a sixth is, so that every API server has long trusted
// it by then. What was served stays trusted until it expires, so that a replica that is late is believed.
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

// skew is how far a clock may be behind for a new certificate to be valid already.
const skew = 5 * time.Minute

// A pair is a certificate and its key, as PEM.
type pair struct{ certificate, key []byte }

// newPair makes a certificate for a name, which is its own authority.
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

// load reads a pair, as a server needs it.
func (p pair) load() (*tls.Certificate, error) {
	loaded, err := tls.X509KeyPair(p.certificate, p.key)
	return &loaded, err
}

// left is for how long the pair can be served under a name; 0 when it cannot.
func (p pair) left(name string, now time.Time) time.Duration {
	loaded, err := p.load()
	if err != nil || loaded.Leaf.VerifyHostname(name) != nil {
		return 0
	}
	return max(loaded.Leaf.NotAfter.Sub(now), 0)
}

// parse reads one certificate.
func parse(certificate []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(certificate)
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("this is not one certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}
