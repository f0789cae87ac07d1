//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/cluster/pki"
)

// requireTLS makes the MariaDB of the test serve its certificate and refuse other connections.
const requireTLS = `{"spec": {"template": {"spec": {
	"containers": [{
		"name": "mariadb",
		"args": ["--innodb-buffer-pool-size=64M", "--ssl-cert=/tls/tls.crt", "--ssl-key=/tls/tls.key",
			"--require-secure-transport=ON"],
		"volumeMounts": [{"name": "tls", "mountPath": "/tls", "readOnly": true}]
	}],
	"volumes": [{"name": "tls", "secret": {"secretName": "mariadb-tls", "defaultMode": 288}}]
}}}}`

// reachesDatabaseWithTLS checks that slurmdbd connects to a database that requires TLS, that it does not trust another
// CA, and that the Accounting says what is wrong.
func (c *slurmCluster) reachesDatabaseWithTLS(t *testing.T) {
	server, stranger := newAuthority(t), newAuthority(t)
	if err := server.Issue("mariadb", pki.Subject{CommonName: "mariadb", Hosts: []string{"mariadb"}}); err != nil {
		t.Fatal(err)
	}
	c.namespace.CreateSecret(t, "mariadb-tls", map[string][]byte{
		"tls.crt": readFile(t, server.File("mariadb.crt")), "tls.key": readFile(t, server.File("mariadb.key")),
		"ca.crt": readFile(t, server.File("ca.crt")),
	})
	c.namespace.CreateSecret(t, "other-ca", map[string][]byte{"ca.crt": readFile(t, stranger.File("ca.crt"))})
	c.mustRun(t, "patch", "statefulset/mariadb", "--type=strategic", "--patch", requireTLS)
	c.mustRun(t, "rollout", "status", "statefulset/mariadb", "--timeout=10m")
	c.databaseIs(t, "False|DatabaseAccessDenied|", "requires TLS", "set spec.storageConfig.tls")
	c.trustCA(t, "other-ca")
	c.databaseIs(t, "False|DatabaseUnreachable|", "no trusted connection", "spec.storageConfig.tls")
	c.trustCA(t, "mariadb-tls")
	c.databaseIs(t, "True|AsExpected|")
	becomesReady(t, c.namespace, 2*time.Minute, "accounting/slurm")
	c.isRegisteredInAccounting(t)
}

// trustCA makes slurmdbd verify its database with the CA in a Secret.
func (c *slurmCluster) trustCA(t *testing.T, secret string) {
	t.Helper()
	c.mustRun(t, "patch", "accounting/slurm", "--type=merge", "--patch",
		fmt.Sprintf(`{"spec":{"storageConfig":{"tls":{"caSecretRef":{"name":%q,"key":"ca.crt"}}}}}`, secret))
}

// reportsOnlyToOperator checks that another pod of the cluster cannot read what the helpers next to slurmctld and
// slurmdbd report, while the operator can.
func (c *slurmCluster) reportsOnlyToOperator(t *testing.T) {
	for pod, path := range map[string]string{"slurm-controller-0": "/state", "slurm-accounting-0": "/database"} {
		address := c.mustRun(t, "get", "pod/"+pod, "--output", "jsonpath={.status.podIP}")
		out, err := c.login(t.Context(), "bash", "-c", fmt.Sprintf(
			`exec 3<>/dev/tcp/%s/6816 && printf 'GET %s HTTP/1.0\r\n\r\n' >&3 && head -n 1 <&3`, address, path))
		if err != nil || !strings.Contains(out, " 401 ") {
			t.Errorf("%s of %s answers %q: %v", path, pod, out, err)
		}
	}
	c.namespace.Eventually(t, time.Minute, "the applied configuration", func(ctx context.Context) error {
		return conditionIs(ctx, c.namespace, "controller.slinky.slurm.net/slurm", "ConfigurationApplied", "True|Applied")
	})
}

// mustRun runs kubectl in the namespace of the cluster.
func (c *slurmCluster) mustRun(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := c.namespace.Run(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	authority, err := pki.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
