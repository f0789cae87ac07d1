package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestCertificateExpiry(t *testing.T) {
	none := newExpiry(func() (*tls.Certificate, error) { return nil, errors.New("there is no certificate yet") })
	if count := testutil.CollectAndCount(none); count != 0 {
		t.Errorf("%d series without a certificate", count)
	}
	expires := time.Now().Add(time.Hour)
	of := newExpiry(fromDirectory(writeCertificate(t, expires)))
	want := "# HELP slurm_operator_webhook_certificate_expiry_timestamp_seconds when the certificate that a webhook pod " +
		"serves expires; on the webhook's metrics port\n" +
		"# TYPE slurm_operator_webhook_certificate_expiry_timestamp_seconds gauge\n" +
		"slurm_operator_webhook_certificate_expiry_timestamp_seconds " + strconv.FormatInt(expires.Unix(), 10) + "\n"
	if err := testutil.CollectAndCompare(of, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// writeCertificate returns a directory with a certificate and its key.
func writeCertificate(t *testing.T, expires time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: expires}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: certificate}, "tls.key": {Type: "PRIVATE KEY", Bytes: encoded},
	} {
		if err := os.WriteFile(filepath.Join(directory, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}
