//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestClusterIsolation runs two clusters in two namespaces with one operator, of two Slurm releases if two are tested.
// All their objects have the same names. Neither sees the other's jobs and nodes, nor is affected when the other's
// slurmrestd hangs or when the other is deleted.
func TestClusterIsolation(t *testing.T) {
	operator := startOperator(t)
	versions := strings.Split(*slurmVersions, ",")
	one, other := startServices(t, operator, "one", versions[0]), startServices(t, operator, "other",
		versions[len(versions)-1])
	slurmctld := map[*slurmCluster]string{}
	for _, cluster := range []*slurmCluster{one, other} {
		cluster.applyNodeSet(t, "cpu", "replicas: 4", "partition: {enabled: true, config: State=UP}")
		cluster.configurationIs(t, "True|Applied")
		slurmctld[cluster] = cluster.slurmctldStart(t)
	}
	jobs := one.submitJobs(t, "neighbours", "cpu")
	t.Run("jobs and nodes are separate", func(t *testing.T) {
		one.seesOnlyOwnJobsAndNodes(t, other)
		other.seesOnlyOwnJobsAndNodes(t, one)
	})
	t.Run("a hanging slurmrestd does not slow the other cluster", func(t *testing.T) {
		before := one.resize(t)
		other.signal(t, "deployment/slurm-restapi", "slurmrestd", "STOP")
		other.namespace.Eventually(t, 2*time.Minute, "the operator to notice", func(ctx context.Context) error {
			return conditionIs(ctx, other.namespace, "nodeset/cpu", "SlurmReachable", "False")
		})
		during := one.resize(t)
		t.Logf("adding and removing a node: %.1f s, and %.1f s while another cluster hangs", before.Seconds(),
			during.Seconds())
		if during > 2*before+10*time.Second {
			t.Errorf("adding and removing a node takes %s instead of %s", during, before)
		}
		other.signal(t, "deployment/slurm-restapi", "slurmrestd", "CONT")
		becomesReady(t, other.namespace, time.Minute, "controller.slinky.slurm.net/slurm", "nodeset/cpu")
	})
	t.Run("deleting one cluster does not affect the other", func(t *testing.T) {
		other.namespace.MustRun(t, "delete", "namespace", other.namespace.Name, "--timeout=10m")
		if now := one.slurmctldStart(t); now != slurmctld[one] {
			t.Errorf("slurmctld's container started at %s, and now at %s", slurmctld[one], now)
		}
		one.resize(t)
	})
	jobs.stop(t)
	jobs.checkAllCompleted(t)
}

// seesOnlyOwnJobsAndNodes checks that this cluster shows its own nodes, and neither jobs nor nodes of the other.
func (c *slurmCluster) seesOnlyOwnJobsAndNodes(t *testing.T, other *slurmCluster) {
	t.Helper()
	name := "of-" + other.namespace.Name
	job := other.startJob(t, "--partition=cpu", "--job-name="+name, "--nodelist=cpu-3", "--mem=64M")
	for _, command := range [][]string{
		{"squeue", "--noheader", "--name=" + name}, {
			"sacct", "--noheader", "--allocations", "--starttime=now-1hour", "--name=" + name,
		},
	} {
		if out, err := c.login(t.Context(), command...); err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("in %s, %s shows %q: %v", c.namespace.Name, command[0], out, err)
		}
	}
	other.finishJob(t, job)
	// Both have nodes with the same names, at different addresses.
	addresses := c.namespace.MustRun(t, "get", "pods", "--selector=app.kubernetes.io/name=slurmd",
		"--output=jsonpath={.items[*].status.podIP}")
	out, err := c.login(t.Context(), "sinfo", "--noheader", "--Node", "--partition=cpu", "--format=%o")
	if err != nil || len(strings.Fields(out)) != len(strings.Fields(addresses)) {
		t.Errorf("in %s, sinfo shows %q for pods at %s: %v", c.namespace.Name, out, addresses, err)
	}
	for address := range strings.FieldsSeq(out) {
		if !strings.Contains(" "+addresses+" ", " "+address+" ") {
			t.Errorf("in %s a node has address %s, and the pods %s", c.namespace.Name, address, addresses)
		}
	}
}

// resize adds a node and removes it again, and returns how long that took.
func (c *slurmCluster) resize(t *testing.T) time.Duration {
	t.Helper()
	started := time.Now()
	for _, replicas := range []int{5, 4} {
		c.namespace.MustRun(t, "scale", "nodeset/cpu", fmt.Sprintf("--replicas=%d", replicas))
		c.namespace.Eventually(t, 2*time.Minute, fmt.Sprintf("%d nodes", replicas), func(ctx context.Context) error {
			out, err := c.namespace.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/name=slurmd", "--output=name")
			if pods := strings.Fields(out); err == nil && len(pods) != replicas {
				err = fmt.Errorf("there are %v", pods)
			}
			if err != nil {
				return err
			}
			return c.isReady(ctx, "nodeset/cpu")
		})
	}
	return time.Since(started)
}
