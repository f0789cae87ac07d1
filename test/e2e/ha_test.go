//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// TestSlurmctldFailover checks that a cluster with two slurmctlds survives the loss of the primary's Kubernetes node:
// the backup takes over and a running job continues, without any action of an administrator or the operator (I12).
func TestSlurmctldFailover(t *testing.T) {
	own := ownCluster(t)
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			cluster := &slurmCluster{
				namespace: kube.NewNamespace(t, "ha-"+strings.ReplaceAll(version, ".", "-")), operator: operator,
				version: version,
			}
			values := settings{
				smokeSettings: smokeSettings{Version: version}, Nodes: 1,
				ConfServer: "slurm-controller-0:6817,slurm-controller-1:6817",
			}
			cluster.namespace.ApplyTemplates(t, manifests, "ha/slurmctld.yaml", values)
			var primary string
			primary, values.Node = cluster.primaryAndThird(t)
			cluster.namespace.ApplyTemplates(t, manifests, "ha/others.yaml", values)
			cluster.namespace.ApplyTemplates(t, manifests, "cluster/nodes.yaml", values)
			becomesReady(t, cluster.namespace, 3*time.Minute, "controller.slinky.slurm.net/slurm", "restapi/slurm",
				"loginset/login")
			cluster.namespace.Eventually(t, time.Minute, "an idle node",
				func(ctx context.Context) error { return cluster.sinfoShows(ctx, "all* idle 1") })
			job := cluster.startJob(t)
			started := cluster.waitForSavedStart(t, job)
			stillRuns := func(ctx context.Context) error {
				return cluster.jobIs(ctx, job, "JobState=RUNNING", "Restarts=0", started)
			}

			node, err := own.Node(primary)
			if err != nil {
				t.Fatal(err)
			}
			if err := node.Off(t.Context()); err != nil {
				t.Fatal(err)
			}
			cut := time.Now()
			cluster.namespace.Eventually(t, 3*time.Minute, "the job under the backup", stillRuns)
			t.Logf("%s: the backup answers %.1f s after the primary's Kubernetes node was lost, and the job still runs",
				version, time.Since(cut).Seconds())
			if err := node.On(); err != nil {
				t.Fatal(err)
			}
			back := time.Now()
			cluster.namespace.Eventually(t, 5*time.Minute, "both slurmctlds", func(ctx context.Context) error {
				out, err := cluster.login(ctx, "scontrol", "ping")
				if err == nil && strings.Count(out, "is UP") != 2 {
					err = fmt.Errorf("scontrol ping shows %q", out)
				}
				return err
			})
			t.Logf("%s: both slurmctlds answer %.1f s after the Kubernetes node came back", version,
				time.Since(back).Seconds())
			cluster.namespace.Eventually(t, time.Minute, "the job under the primary", stillRuns)
			cluster.finishJob(t, job)
			becomesReady(t, cluster.namespace, 2*time.Minute, "controller.slinky.slurm.net/slurm")
		})
	}
}

// primaryAndThird waits for both slurmctlds and returns the primary's Kubernetes node and one on which neither runs.
func (c *slurmCluster) primaryAndThird(t *testing.T) (primary, third string) {
	t.Helper()
	nodes := []string{"node-1", "node-2", "node-3"}
	c.namespace.Eventually(t, 3*time.Minute, "two running slurmctlds", func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/name=slurmctld",
			"--sort-by=.metadata.name",
			"--output=jsonpath={range .items[?(@.status.phase==\"Running\")]}{.spec.nodeName} {end}")
		if err != nil {
			return err
		}
		used := strings.Fields(out)
		if len(used) != 2 {
			return fmt.Errorf("they run on %v", used)
		}
		primary = used[0]
		free := slices.DeleteFunc(slices.Clone(nodes), func(node string) bool { return slices.Contains(used, node) })
		if len(free) != 1 {
			return errors.New("no Kubernetes node is left for the other pods")
		}
		third = free[0]
		return nil
	})
	return primary, third
}

// waitForSavedStart waits until slurmctld has saved that a job has started, and returns its StartTime field. slurmctld
// saves within seconds; a start that is not saved at a power failure is lost, and the backup starts the job again.
func (c *slurmCluster) waitForSavedStart(t *testing.T, job string) string {
	t.Helper()
	if _, err := c.namespace.Exec(t.Context(), "pod/slurm-controller-0", "touch", "/tmp/before"); err != nil {
		t.Fatal(err)
	}
	// This change makes slurmctld save the job.
	if _, err := c.login(t.Context(), "scontrol", "update", "JobId="+job, "Comment=started"); err != nil {
		t.Fatal(err)
	}
	c.namespace.Eventually(t, time.Minute, "the job in the saved state", func(ctx context.Context) error {
		out, err := c.namespace.Exec(ctx, "pod/slurm-controller-0", "find", "/var/spool/slurmctld", "-name",
			"job_state", "-newer", "/tmp/before")
		if err == nil && out == "" {
			err = errors.New("the job state was not saved since")
		}
		return err
	})
	started, err := c.login(t.Context(), "squeue", "--noheader", "--jobs="+job, "--format=StartTime=%S")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(started)
}
