package slurmconf

import (
	"strings"
	"testing"
)

func database() Database {
	return Database{
		Host: "accounting-0", Port: 6819, SlurmUser: "slurm", JWKS: true,
		Storage: Endpoint{"mariadb", 3306}, User: "slurm", Password: `p a#s\s`, Name: "slurm_acct_db",
	}
}

func TestBuildDatabase(t *testing.T) {
	with := database()
	with.ExtraConf = "PurgeJobAfter=12months\nPrivateData=jobs\nPrivateData=users,jobs\nAuthInfo=ttl=60\nStorageHost=mariadb\n"
	document, err := BuildDatabase(with)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "slurmdbd.conf", document)
}

func TestBuildDatabaseWithTLS(t *testing.T) {
	const ca, certificate, key = "SSL_CA=/etc/slurm/database-ca.crt", "SSL_CERT=/etc/slurm/database.crt",
		"SSL_KEY=/etc/slurm/database.key"
	for name, test := range map[string]struct {
		change func(*Database)
		want   string // the value, or a part of the error
		fails  bool
	}{
		"without TLS": {func(*Database) {}, "", false},
		"without TLS, by the user": {
			func(d *Database) { d.ExtraConf = "StorageParameters=SSL_CA=/ca" }, "SSL_CA=/ca", false,
		},
		"with a CA": {func(d *Database) { d.TLS = true }, ca, false},
		"with a client certificate": {
			func(d *Database) { d.TLS, d.ClientCertificate = true, true }, ca + "," + certificate + "," + key, false,
		},
		"with another setting added": {
			func(d *Database) { d.TLS, d.ExtraConf = true, "StorageParameters=SSL_CIPHER=ECDHE" },
			ca + ",SSL_CIPHER=ECDHE", false,
		},
		"with another CA in extraConf": {
			func(d *Database) { d.TLS, d.ExtraConf = true, "StorageParameters=SSL_CA=/other" },
			"SSL_CA belongs to the operator", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			with := database()
			test.change(&with)
			document, err := BuildDatabase(with)
			got, _ := document.Get("StorageParameters")
			if host, _ := document.Get("StorageHost"); with.TLS != (host == "host=mariadb;ssl-verify-server-cert=1") {
				t.Errorf("the host is %q", host)
			}
			if test.fails != (err != nil) || !test.fails && got != test.want ||
				test.fails && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q and the error %v", got, err)
			}
		})
	}
}

func TestBuildDatabaseQuotesPasswords(t *testing.T) {
	for name, password := range map[string]string{
		"plain": "secret", "empty": "", "with a number sign": "a#b", "with backslashes": `\a\\`, "with blanks": " a b ",
		"with a quote": `a"b`, "with equals signs": "a=b c=d", "in another script": "пароль",
	} {
		t.Run(name, func(t *testing.T) {
			with := database()
			with.Password = password
			document, err := BuildDatabase(with)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse(document.Render())
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := again.Get("StoragePass"); got != password {
				t.Errorf("got %q, want %q", got, password)
			}
		})
	}
}

func TestBuildDatabaseErrorsOmitThePassword(t *testing.T) {
	const canary = "canary"
	for name, test := range map[string]struct {
		change func(*Database)
		want   string
	}{
		"with a line break": {
			func(d *Database) { d.Password = canary + "\nA=1" },
			"the value of StoragePass cannot be used: it has a line break",
		},
		"with a quote at its start": {func(d *Database) { d.Password = `"` + canary }, "begins with a quote"},
		"with blanks and quotes":    {func(d *Database) { d.Password = canary + ` "` }, "both blanks and quotes"},
		"in extraConf": {
			func(d *Database) { d.ExtraConf = "StoragePass=" + canary },
			"line 1: StoragePass: the operator sets this key: passwords belong in a Secret; " +
				"set spec.storageConfig.passwordKeyRef instead",
		},
		"in extraConf, badly written": {func(d *Database) { d.ExtraConf = "storagepass=x " + canary }, `line 1: "storagepass…"`},
		"in a host": {
			func(d *Database) { d.Storage.Host = canary + "\n" }, "the value of StorageHost cannot be used",
		},
	} {
		t.Run(name, func(t *testing.T) {
			with := database()
			test.change(&with)
			_, err := BuildDatabase(with)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error shows it: %v", err)
			}
		})
	}
}

func TestBuildCgroup(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "CgroupPlugin=disabled\n",
		"# nothing\n":         "CgroupPlugin=disabled\n",
		"ConstrainCores=yes ": "ConstrainCores=yes\n",
	} {
		document, err := BuildCgroup(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := document.Render(); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
	if _, err := BuildCgroup("ConstrainCores"); err == nil {
		t.Error("nonsense was accepted")
	}
}
