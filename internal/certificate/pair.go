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

// A Pair is a certificate and its key, as PEM.
type Pair struct{ Certificate, Key []byte }

// NewPair generates a self-signed certificate for DNS names.
func NewPair(names []string, now time.Time, lifetime time.Duration) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, fmt.Errorf("choosing a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName(names)},
		DNSNames:     names,
		NotBefore:    now.Add(-skew),
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing the certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encoding the key: %w", err)
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

// commonName returns the first name that fits into the subject, which is only for people: at most 64 characters.
func commonName(names []string) string {
	for _, name := range names {
		if len(name) <= 64 {
			return name
		}
	}
	return ""
}

// Load returns a pair as a TLS certificate.
func (p Pair) Load() (*tls.Certificate, error) {
	loaded, err := tls.X509KeyPair(p.Certificate, p.Key)
	return &loaded, err
}

// expiry returns when the pair expires; zero if it cannot be served under all names.
func (p Pair) expiry(names []string) time.Time {
	loaded, err := p.Load()
	if err != nil {
		return time.Time{}
	}
	for _, name := range names {
		if loaded.Leaf.VerifyHostname(name) != nil {
			return time.Time{}
		}
	}
	return loaded.Leaf.NotAfter
}

// remaining returns how long the pair can be served under all names; 0 if it cannot.
func (p Pair) remaining(names []string, now time.Time) time.Duration {
	return max(p.expiry(names).Sub(now), 0)
}

// parse parses one certificate.
func parse(certificate []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(certificate)
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("this is not one certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}
