//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/cluster/pki"
	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

//go:embed identity/*.yaml
var identity embed.FS

// TestDirectoryUsers tests a cluster whose users are in an LDAP directory: they log in, and run jobs on nodes that know
// the directory and on nodes that do not.
func TestDirectoryUsers(t *testing.T) {
	startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			site := startDirectorySite(t, version)
			t.Run("a user logs in with a key", site.acceptsKey)
			t.Run("a user logs in with a password", site.acceptsPassword)
			t.Run("jobs run as the user", site.runsJobsAsUser)
			t.Run("a user with a job logs in to its node", site.admitsUserToNode)
			t.Run("a token identifies the user", site.acceptsToken)
			t.Run("a partition is for a group", site.admitsGroup)
			t.Run("a removed user cannot log in", site.refusesRemovedUser)
			t.Run("the password in sssd.conf does not leak", site.hidesBindPassword)
		})
	}
}

// A directorySite is a cluster with a directory service, and a pod with ssh from which users log in.
type directorySite struct {
	slurmCluster
	// password is that of the user carol, and bindPassword one in sssd.conf.
	password, bindPassword string
}

func startDirectorySite(t *testing.T, version string) directorySite {
	t.Helper()
	site := directorySite{password: rand.Text(), bindPassword: "canary-" + rand.Text()}
	site.namespace = kube.NewNamespace(t, "identity-"+strings.ReplaceAll(version, ".", "-"))
	site.operator, site.version = operatorNamespace, version
	private, authorized := sshKeyPair(t)
	site.createCertificates(t)
	site.namespace.CreateSecret(t, "ssh-client", map[string][]byte{"key": private, "password": []byte(site.password)})
	site.namespace.ApplyTemplates(t, identity, "identity/directory.yaml", struct {
		smokeSettings
		Password, AuthorizedKey string
	}{Password: site.password, AuthorizedKey: authorized})
	site.namespace.ApplyTemplates(t, identity, "identity/client.yaml", smokeSettings{Version: version})
	site.namespace.InstallCluster(t, identity, "identity/values.yaml", struct {
		smokeSettings
		BindPassword string
	}{smokeSettings{Version: version}, site.bindPassword})
	becomesReady(t, site.namespace, 5*time.Minute, "controller.slinky.slurm.net/slurm", "restapi/slurm",
		"nodeset/worker", "nodeset/shell", "loginset/login")
	return site
}

// hidesBindPassword searches everything that non-administrators may read for a password in sssd.conf.
func (s directorySite) hidesBindPassword(t *testing.T) {
	if config := s.secret(t, "slurm-sssd", "sssd.conf"); !bytes.Contains(config, []byte(s.bindPassword)) {
		t.Fatal("sssd.conf does not have the password")
	}
	s.checkTexts(t, map[string][]byte{"the password in sssd.conf": []byte(s.bindPassword)}, s.publicTexts(t))
}

// createCertificates creates the certificate of the directory service, and a ConfigMap with the CA that signed it.
func (s directorySite) createCertificates(t *testing.T) {
	t.Helper()
	authority, err := pki.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Issue("ldap", pki.Subject{CommonName: "ldap", Hosts: []string{"ldap"}}); err != nil {
		t.Fatal(err)
	}
	s.namespace.MustRun(t, "create", "configmap", "authority", "--from-file="+authority.File("ca.crt"))
	s.namespace.MustRun(t, "create", "secret", "tls", "ldap", "--cert="+authority.File("ldap.crt"),
		"--key="+authority.File("ldap.key"))
}

var (
	withKey      = []string{"-i", "/client/key", "-o", "PasswordAuthentication=no"}
	withPassword = []string{"-o", "PubkeyAuthentication=no", "-o", "NumberOfPasswordPrompts=1"}
)

// ssh runs a command as a user in a login pod.
func (s directorySite) ssh(ctx context.Context, user string, options []string, command string) (string, error) {
	return s.sshTo(ctx, user+"@login", options, command)
}

func (s directorySite) sshTo(ctx context.Context, target string, options []string, command string) (string, error) {
	return s.namespace.Exec(ctx, "pod/ssh-client", slices.Concat(
		[]string{"ssh", "-o", "StrictHostKeyChecking=accept-new", "-o", "ConnectTimeout=5"}, options,
		[]string{target, command})...)
}

func (s directorySite) acceptsKey(t *testing.T) {
	s.namespace.Eventually(t, time.Minute, "a login with the key in the directory", func(ctx context.Context) error {
		out, err := s.ssh(ctx, "carol", withKey, "id; pwd")
		want := "uid=30001(carol) gid=30001(carol) groups=30001(carol),30100(chemistry)\n/home/carol\n"
		if err == nil && out != want {
			err = fmt.Errorf("it printed %q, not %q", out, want)
		}
		return err
	})
}

func (s directorySite) acceptsPassword(t *testing.T) {
	out, err := s.ssh(t.Context(), "carol", withPassword, "id --user")
	if err != nil || out != "30001\n" {
		t.Fatalf("it printed %q: %v", out, err)
	}
	s.namespace.MustRun(t, "exec", "pod/ssh-client", "--", "sh", "-c", "echo wrong >/tmp/password")
	out, err = s.ssh(t.Context(), "carol", withPassword, "id --user")
	if err == nil {
		t.Errorf("a wrong password was accepted, and it printed %q", out)
	}
}

func (s directorySite) runsJobsAsUser(t *testing.T) {
	for partition, want := range map[string]string{
		// The uid, gid and groups are in the job's credential; only names need the directory.
		"worker": "30001\n30001 30100\n30001\n/home/carol\n",
		"shell":  "30001\n30001 30100\ncarol\n/home/carol\n",
	} {
		out, err := s.ssh(t.Context(), "carol", withKey, "sbatch --quiet --wait --partition="+partition+
			" --output=log --wrap='id --user; id --groups; stat --format=%U . | sed s/UNKNOWN/30001/; pwd' && cat log")
		if err != nil || out != want {
			t.Errorf("%s: it printed %q, not %q: %v", partition, out, want, err)
		}
	}
}

func (s directorySite) admitsUserToNode(t *testing.T) {
	if _, err := s.ssh(t.Context(), "carol", withKey, "sbatch --partition=shell --wrap='sleep 600'"); err != nil {
		t.Fatal(err)
	}
	s.namespace.Eventually(t, time.Minute, "a login to the node of the job", func(ctx context.Context) error {
		out, err := s.sshTo(ctx, "carol@shell-0.slurm-workers", withKey, "hostname; id --user --name; pwd")
		if want := "shell-0\ncarol\n/home/carol\n"; err == nil && out != want {
			err = fmt.Errorf("it printed %q, not %q", out, want)
		}
		return err
	})
	if _, err := s.ssh(t.Context(), "carol", withKey, "scancel --user=carol"); err != nil {
		t.Fatal(err)
	}
}

// acceptsToken submits a job with a token, which contains only the user's name: slurmctld has to know the rest.
func (s directorySite) acceptsToken(t *testing.T) {
	token, err := s.namespace.Run(t.Context(), "get", "secret/carol-jwt-carol",
		"--output=go-template={{.data.SLURM_JWT | base64decode}}")
	if err != nil {
		t.Fatal(err)
	}
	s.namespace.Eventually(t, time.Minute, "a job of the token's user", func(ctx context.Context) error {
		out, err := s.namespace.Exec(ctx, "deployment/login", "env", "SLURM_JWT="+token,
			"sbatch", "--wait", "--chdir=/home/carol", "--output=token.log", "--wrap=id --user")
		if err != nil {
			return fmt.Errorf("it printed %q: %w", out, err)
		}
		return nil
	})
	if out, err := s.ssh(t.Context(), "carol", withKey, "cat token.log"); err != nil || out != "30001\n" {
		t.Errorf("the job printed %q: %v", out, err)
	}
}

func (s directorySite) admitsGroup(t *testing.T) {
	if out, err := s.ssh(t.Context(), "carol", withKey, "srun --partition=chemistry true"); err != nil {
		t.Errorf("a member of the group was refused: %s%v", out, err)
	}
	_, err := s.ssh(t.Context(), "dave", withKey, "srun --partition=chemistry true")
	if err == nil || !strings.Contains(err.Error(), "group not permitted to use this partition") {
		t.Errorf("the answer to a user who is not in the group is %v", err)
	}
}

func (s directorySite) refusesRemovedUser(t *testing.T) {
	s.namespace.Eventually(t, time.Minute, "a login before the removal", func(ctx context.Context) error {
		_, err := s.ssh(ctx, "dave", withKey, "true")
		return err
	})
	s.namespace.MustRun(t, "exec", "deployment/ldap", "--", "ldapdelete", "-Q", "-Y", "EXTERNAL", "-H",
		"ldapi://%2Ftmp%2Fslapd%2Fsocket", "uid=dave,ou=people,dc=example,dc=com")
	s.namespace.Eventually(t, time.Minute, "a refusal after the removal", func(ctx context.Context) error {
		out, err := s.ssh(ctx, "dave", withKey, "true")
		if err == nil {
			return fmt.Errorf("ssh succeeded and printed %q", out)
		}
		if !strings.Contains(err.Error(), "Permission denied") {
			return err
		}
		return nil
	})
}
