// Package pki creates the certificates, keys and kubeconfigs of a test cluster, all signed by one CA.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime is long enough for any test cluster, because each start creates new certificates.
const lifetime = 365 * 24 * time.Hour

// Authority is a CA that stores the certificates it signs, with their keys, as PEM files in its directory.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// New creates a CA with the files dir/ca.crt and dir/ca.key.
func New(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	authority := &Authority{dir: dir, key: key}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "test cluster"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	authority.cert = template
	der, err := authority.sign(template, key)
	if err != nil {
		return nil, err
	}
	if authority.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	authority.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return authority, authority.write("ca", der, key)
}

// Subject is the subject of a certificate; Hosts are its DNS names and IP addresses.
type Subject struct {
	CommonName   string
	Organization string
	Hosts        []string
}

// Issue writes name.crt and name.key for the subject, valid for servers and clients.
func (a *Authority) Issue(name string, subject Subject) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: subject.CommonName},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if subject.Organization != "" {
		template.Subject.Organization = []string{subject.Organization}
	}
	for _, host := range subject.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := a.sign(template, key)
	if err != nil {
		return fmt.Errorf("issuing %s: %w", name, err)
	}
	return a.write(name, der, key)
}

// IssueKubeconfig issues a client certificate and writes a self-contained name.kubeconfig.
func (a *Authority) IssueKubeconfig(name, server string, subject Subject) error {
	if err := a.Issue(name, subject); err != nil {
		return err
	}
	cert, err := os.ReadFile(a.File(name + ".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(a.File(name + ".key"))
	if err != nil {
		return err
	}
	encode := base64.StdEncoding.EncodeToString
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: cluster
contexts:
- name: cluster
  context: {cluster: cluster, user: %[1]s}
clusters:
- name: cluster
  cluster:
    server: %[2]s
    certificate-authority-data: %[3]s
users:
- name: %[1]s
  user:
    client-certificate-data: %[4]s
    client-key-data: %[5]s
`, name, server, encode(a.pem), encode(cert), encode(key))
	return os.WriteFile(a.File(name+".kubeconfig"), []byte(config), 0o600)
}

// IssueSigningKey writes name.key and name.pub, a key pair for service account tokens.
func (a *Authority) IssueSigningKey(name string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writePEM(a.File(name+".pub"), "PUBLIC KEY", public, 0o644); err != nil {
		return err
	}
	return writeKey(a.File(name+".key"), key)
}

// File returns the path of a file in the CA's directory.
func (a *Authority) File(name string) string { return filepath.Join(a.dir, name) }

func (a *Authority) sign(template *x509.Certificate, key crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(lifetime)
	return x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
}

func (a *Authority) write(name string, der []byte, key crypto.Signer) error {
	if err := writePEM(a.File(name+".crt"), "CERTIFICATE", der, 0o644); err != nil {
		return err
	}
	return writeKey(a.File(name+".key"), key)
}

func writeKey(path string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "PRIVATE KEY", der, 0o600)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}
