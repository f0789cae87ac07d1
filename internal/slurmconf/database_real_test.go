//go:build slurm

package slurmconf_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/cluster/pki"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// TestRealSlurmdbdVerifiesItsDatabase starts a MariaDB that requires TLS, and a slurmdbd with every configuration that
// must and must not connect to it. Slurm only passes the files on: what is verified depends on the client library.
func TestRealSlurmdbdVerifiesItsDatabase(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Accounting: true})
			authority, stranger := newAuthority(t), newAuthority(t)
			ours, others := read(t, authority, "ca.crt"), read(t, stranger, "ca.crt")
			server := issue(t, authority, "mariadb")
			database := database{slurm}
			slurm.MariaDB.Write(t, "/data/ca.crt", ours)
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
			database.fails(t, "no TLS", "mariadb", "", none, "3159 ")
			database.connects(t, "the right CA", "mariadb", ours, none)
			database.fails(t, "another CA", "mariadb", others, none, "2026 ")
			database.fails(t, "another host name", "database", ours, none, "2026 ")

			database.sql(t, "ALTER USER slurm@'%' REQUIRE X509")
			database.fails(t, "no client certificate", "mariadb", ours, none, "1045 ")
			database.fails(t, "a client certificate of another CA", "mariadb", ours, issue(t, stranger, "slurm"), "")
			database.connects(t, "a client certificate", "mariadb", ours, issue(t, authority, "slurm"))
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
func (d database) connects(t *testing.T, name, host, ca string, client certificate) {
	t.Helper()
	d.use(t, host, ca, client)
	d.WaitFor(t, "slurmdbd with "+name, func(ctx context.Context) error {
		_, err := d.Login.Run(ctx, "sacctmgr", "--noheader", "list", "cluster")
		return err
	})
}

// fails expects that slurmdbd does not connect, with an error.
func (d database) fails(t *testing.T, name, host, ca string, client certificate, want string) {
	t.Helper()
	log := d.use(t, host, ca, client)
	var failure string
	d.WaitFor(t, "the error of "+name, func(context.Context) error {
		_, after, _ := strings.Cut(d.Slurmdbd.Logs()[log:], "mysql_real_connect failed: ")
		var found bool
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

// use restarts slurmdbd with a CA and a client certificate, each of which may be empty, and returns where its log
// begins.
func (d database) use(t *testing.T, host, ca string, client certificate) (log int) {
	t.Helper()
	document, err := slurmconf.BuildDatabase(slurmconf.Database{
		Host: "slurmdbd", Port: 6819, SlurmUser: "slurm", Storage: slurmconf.Endpoint{Host: host, Port: 3306},
		User: "slurm", Password: "slurm", Name: "slurm_acct_db", TLS: ca != "",
		ClientCertificate: client.key != "",
	})
	if err != nil {
		t.Fatal(err)
	}
	d.Slurmdbd.Write(t, "/etc/slurm/slurmdbd.conf", document.Render())
	d.Slurmdbd.Write(t, slurmconf.DatabaseCAFile, ca)
	d.Slurmdbd.Write(t, slurmconf.DatabaseCertificateFile, client.certificate)
	d.Slurmdbd.Write(t, slurmconf.DatabaseKeyFile, client.key)
	d.Slurmdbd.Kill(t) // it does not exit while it waits for its database
	log = len(d.Slurmdbd.Logs())
	d.Slurmdbd.Start(t)
	return log
}

// A certificate and its key, in PEM.
type certificate struct{ certificate, key string }

func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	authority, err := pki.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// issue returns a certificate for a host name or a client.
func issue(t *testing.T, authority *pki.Authority, name string) certificate {
	t.Helper()
	if err := authority.Issue(name, pki.Subject{CommonName: name, Hosts: []string{name}}); err != nil {
		t.Fatal(err)
	}
	return certificate{read(t, authority, name+".crt"), read(t, authority, name+".key")}
}

func read(t *testing.T, authority *pki.Authority, file string) string {
	t.Helper()
	content, err := os.ReadFile(authority.File(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
