//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// releases maps each chart to the namespace it is installed in.
var releases = map[string]kube.Namespace{
	"slurm-operator-crds": {Name: "default"}, "slurm-operator": operatorNamespace, "slurm": clusterNamespace,
}

// TestUninstall uninstalls the charts in every order, one right after the other. Nothing may hang, the CRDs and the
// data must stay, and the next installation must use them.
func TestUninstall(t *testing.T) {
	removeEverything(t)
	cluster := helmCharts(".").install(t)
	data := cluster.data(t)
	for _, order := range [][]string{
		{"slurm", "slurm-operator", "slurm-operator-crds"},
		{"slurm", "slurm-operator-crds", "slurm-operator"},
		{"slurm-operator", "slurm", "slurm-operator-crds"},
		{"slurm-operator", "slurm-operator-crds", "slurm"},
		{"slurm-operator-crds", "slurm", "slurm-operator"},
		{"slurm-operator-crds", "slurm-operator", "slurm"},
	} {
		t.Run(strings.Join(order, ", "), func(t *testing.T) {
			started := time.Now()
			for _, release := range order {
				releases[release].MustHelm(t, "uninstall", release)
			}
			cluster.namespace.Eventually(t, time.Minute, "deletion of all our objects",
				func(ctx context.Context) error {
					out, err := cluster.namespace.Run(ctx, "get", "slurm,pods,statefulsets,deployments,services",
						"--output=name")
					if err == nil && out != "" {
						err = fmt.Errorf("there is still %s", strings.Join(strings.Fields(out), ", "))
					}
					return err
				})
			t.Logf("gone %.1f s after the first helm uninstall", time.Since(started).Seconds())
			helmCharts(".").install(t)
			if now := cluster.data(t); now != data {
				t.Errorf("PVCs and keys were\n%s\nand are now\n%s", data, now)
			}
		})
	}
	removeEverything(t)
}

// data lists the PVCs and keys of the cluster, with their UIDs.
func (c *slurmCluster) data(t *testing.T) string {
	t.Helper()
	out, err := c.namespace.Run(t.Context(), "get", "persistentvolumeclaims/slurm-controller-state",
		"secrets/slurm-auth-slurm", "secrets/slurm-auth-jwths256",
		"secrets/login-ssh-host-keys", "--output=jsonpath={range .items[*]}{.kind} {.metadata.name} "+
			"{.metadata.uid}{\"\\n\"}{end}")
	if err != nil {
		t.Fatal(err)
	}
	return out
}
