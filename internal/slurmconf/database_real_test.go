//go:build slurm

package slurmconf_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// TestRealSlurmdbdVerifiesItsDatabase starts a MariaDB that requires TLS, and a slurmdbd with every configuration that
// must and must not connect to it. Slurm only passes the files on: what is verified depends on the client library.
func TestRealSlurmdbdVerifiesItsDatabase(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Accounting: true})
			ours, others := newAuthority(t), newAuthority(t)
			server := ours.issue(t, "mariadb")
			database := database{slurm}
			slurm.MariaDB.Write(t, "/data/ca.crt", ours.certificate)
			slurm.MariaDB.Write(t, "/data/server.crt", server.certificate)
			slurm.MariaDB.Write(t, "/data/server.key", server.key)
			// Another name of the same server, which its certificate does not have.
			slurm.Slurmdbd.MustRun(t, "sh", "-c", `sed -n 's/ mariadb$/ database/p' /etc/hosts >>/etc/hosts`)

			database.restart(t, "--ssl-ca=/data/ca.crt", "--ssl-cert=/data/server.crt", "--ssl-key=/data/server.key",
				"--require-secure-transport=ON")
			if _, err := slurm.MariaDB.Run(t.Context(), "mariadb", "--host=mariadb", "--user=slurm", "--password=slurm",
				"--skip-ssl", "-e", "SELECT 1"); err == nil || !strings.Contains(err.Error(), "ERROR 3159") {
				t.Errorf("without encryption the server says %v", err)
			}
			none := certificate{}
			database.fails(t, "no TLS", "mariadb", authority{}, none, "3159 ")
			database.connects(t, "the right CA", "mariadb", ours, none)
			database.fails(t, "another CA", "mariadb", others, none, "2026 ")
			database.fails(t, "another host name", "database", ours, none, "2026 ")

			database.sql(t, "ALTER USER slurm@'%' REQUIRE X509")
			database.fails(t, "no client certificate", "mariadb", ours, none, "1045 ")
			database.fails(t, "a client certificate of another CA", "mariadb", ours, others.issue(t, "slurm"), "")
			database.connects(t, "a client certificate", "mariadb", ours, ours.issue(t, "slurm"))
			database.sql(t, "ALTER USER slurm@'%' REQUIRE NONE")

			// A server, or an attacker in between, that offers no TLS.
			database.restart(t, "--skip-ssl")
			database.fails(t, "a server without TLS", "mariadb", ours, none, "2026 ")
		})
	}
}

// A database is a MariaDB and the slurmdbd that uses it.
type database struct{ *slurmnet.Cluster }

// restart starts MariaDB with arguments.
func (d database) restart(t *testing.T, args ...string) {
	t.Helper()
	d.MariaDB.Stop(t)
	d.MariaDB.StartWith(t, args...)
	d.WaitFor(t, "MariaDB", func(ctx context.Context) error {
		_, err := d.MariaDB.Run(ctx, "mariadb", "--skip-ssl", "-e", "SELECT 1")
		return err
	})
}

func (d database) sql(t *testing.T, statement string) {
	t.Helper()
	d.MariaDB.MustRun(t, "mariadb", "--skip-ssl", "-e", statement)
}

// connects expects that slurmdbd uses the database with a CA and a client certificate, which may be empty.
func (d database) connects(t *testing.T, name, host string, ca authority, client certificate) {
	t.Helper()
	d.use(t, host, ca, client)
	d.WaitFor(t, "slurmdbd with "+name, func(ctx context.Context) error {
		_, err := d.Login.Run(ctx, "sacctmgr", "--noheader", "list", "cluster")
		return err
	})
}

// fails expects that slurmdbd does not connect, with an error.
func (d database) fails(t *testing.T, name, host string, ca authority, client certificate, want string) {
	t.Helper()
	log := d.use(t, host, ca, client)
	var failure string
	d.WaitFor(t, "the error of "+name, func(context.Context) error {
		_, after, found := strings.Cut(d.Slurmdbd.Logs()[log:], "mysql_real_connect failed: ")
		failure, _, found = strings.Cut(after, "\n")
		if !found {
			return errors.New("there is none yet")
		}
		return nil
	})
	t.Logf("%s: %s", name, failure)
	if !strings.HasPrefix(failure, want) {
		t.Errorf("%s: the error is %q, want %q", name, failure, want)
	}
	if strings.Contains(d.Slurmdbd.Logs()[log:], "slurmdbd version") {
		t.Errorf("slurmdbd has started with %s", name)
	}
}

// use restarts slurmdbd with a CA and a client certificate, each of which may be empty, and returns where its log begins.
func (d database) use(t *testing.T, host string, ca authority, client certificate) (log int) {
	t.Helper()
	document, err := slurmconf.BuildDatabase(slurmconf.Database{
		Host: "slurmdbd", Port: 6819, SlurmUser: "slurm", Storage: slurmconf.Endpoint{Host: host, Port: 3306},
		User: "slurm", Password: "slurm", Name: "slurm_acct_db", TLS: ca.certificate != "",
		ClientCertificate: client.key != "",
	})
	if err != nil {
		t.Fatal(err)
	}
	d.Slurmdbd.Write(t, "/etc/slurm/slurmdbd.conf", document.Render())
	d.Slurmdbd.Write(t, slurmconf.DatabaseCAFile, ca.certificate)
	d.Slurmdbd.Write(t, slurmconf.DatabaseCertificateFile, client.certificate)
	d.Slurmdbd.Write(t, slurmconf.DatabaseKeyFile, client.key)
	d.Slurmdbd.Kill(t) // it does not exit while it waits for its database
	log = len(d.Slurmdbd.Logs())
	d.Slurmdbd.Start(t)
	return log
}

// A certificate and its key, in PEM.
type certificate struct{ certificate, key string }

// An authority issues certificates.
type authority struct {
	certificate string
	parsed      *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{encode("CERTIFICATE", der), parsed, key}
}

// issue returns a certificate for a host name or a client.
func (a authority) issue(t *testing.T, name string) certificate {
	t.Helper()
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.parsed, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate{encode("CERTIFICATE", der), encode("PRIVATE KEY", private)}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
