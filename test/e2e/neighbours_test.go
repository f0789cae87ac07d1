//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestNeighbours runs two clusters in two namespaces by one operator, of two releases of Slurm where two are tested. Everything in them
// has the same name. Neither sees what the other has, suffers when the other's slurmrestd does not answer, or notices the other's end.
func TestNeighbours(t *testing.T) {
	operator := startOperator(t)
	versions := strings.Split(*slurmVersions, ",")
	one, other := startServices(t, operator, "one", versions[0]), startServices(t, operator, "other", versions[len(versions)-1])
	slurmctld := map[*slurmCluster]string{}
	for _, cluster := range []*slurmCluster{one, other} {
		cluster.applyNodeSet(t, "cpu", "replicas: 4", "partition: {enabled: true, config: State=UP}")
		cluster.configurationIs(t, "True|Applied")
		slurmctld[cluster] = cluster.slurmctldStart(t)
	}
	books := one.usersSubmit(t, "neighbours", "cpu")
	t.Run("neither sees the other's jobs and nodes", func(t *testing.T) {
		one.seesOnlyItsOwn(t, other)
		other.seesOnlyItsOwn(t, one)
	})
	t.Run("a slurmrestd that stands still slows nobody else", func(t *testing.T) {
		before := one.resizes(t)
		other.signal(t, "deployment/slurm-restapi", "slurmrestd", "STOP")
		other.namespace.Eventually(t, 2*time.Minute, "the operator to notice", func(ctx context.Context) error {
			return conditionIs(ctx, other.namespace, "nodeset/cpu", "SlurmReachable", "False")
		})
		beside := one.resizes(t)
		t.Logf("one node more and one less: %.1f s, and %.1f s beside a cluster that does not answer", before.Seconds(), beside.Seconds())
		if beside > 2*before+10*time.Second {
			t.Errorf("it takes %s instead of %s", beside, before)
		}
		other.signal(t, "deployment/slurm-restapi", "slurmrestd", "CONT")
		becomesReady(t, other.namespace, time.Minute, "controller.slinky.slurm.net/slurm", "nodeset/cpu")
	})
	t.Run("the end of one leaves the other alone", func(t *testing.T) {
		other.namespace.MustRun(t, "delete", "namespace", other.namespace.Name, "--timeout=10m")
		if now := one.slurmctldStart(t); now != slurmctld[one] {
			t.Errorf("slurmctld's container started at %s, and now at %s", slurmctld[one], now)
		}
		one.resizes(t)
	})
	books.close(t)
	books.balance(t)
}

// seesOnlyItsOwn holds that a job and a node of this cluster are there, and not those of another.
func (c *slurmCluster) seesOnlyItsOwn(t *testing.T, other *slurmCluster) {
	t.Helper()
	name := "of-" + other.namespace.Name
	job := other.startsAJob(t, "--partition=cpu", "--job-name="+name, "--nodelist=cpu-3", "--mem=64M")
	for _, command := range [][]string{
		{"squeue", "--noheader", "--name=" + name}, {"sacct", "--noheader", "--allocations", "--starttime=now-1hour", "--name=" + name},
	} {
		if out, err := c.login(t.Context(), command...); err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("in %s, %s shows %q: %v", c.namespace.Name, command[0], out, err)
		}
	}
	other.endsTheJob(t, job)
	// Both have nodes of the same names. Each knows where its own are.
	addresses := c.namespace.MustRun(t, "get", "pods", "--selector=app.kubernetes.io/name=slurmd", "--output=jsonpath={.items[*].status.podIP}")
	out, err := c.login(t.Context(), "sinfo", "--noheader", "--Node", "--partition=cpu", "--format=%o")
	if err != nil || len(strings.Fields(out)) != len(strings.Fields(addresses)) {
		t.Errorf("in %s, sinfo shows %q for pods at %s: %v", c.namespace.Name, out, addresses, err)
	}
	for address := range strings.FieldsSeq(out) {
		if !strings.Contains(" "+addresses+" ", " "+address+" ") {
			t.Errorf("in %s there is a node at %s, and pods at %s", c.namespace.Name, address, addresses)
		}
	}
}

// resizes adds a node and takes it away again, and returns how long that took.
func (c *slurmCluster) resizes(t *testing.T) time.Duration {
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
