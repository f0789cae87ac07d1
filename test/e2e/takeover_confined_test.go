//go:build e2e

package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestConfinedTakeOver checks that a running cluster of another operator, whose jobs are confined in privileged pods on
// a Kubernetes node with cgroup v2, comes along with its jobs.
func TestConfinedTakeOver(t *testing.T) {
	operator := startOperator(t)
	node := startMachine(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			addOtherImages(t, version)
			c, _ := startForeignCluster(t, operator, version, node)
			c.interval = machineInterval
			t.Run("confined jobs come along", c.takesOverConfined)
		})
	}
}

func (c *slurmCluster) takesOverConfined(t *testing.T) {
	first := c.startJob(t, "--nodelist=slinky-0", "--mem=64M", "--partition=slinky", "--time=UNLIMITED")
	jobs := c.submitJobs(t, "takeover", "slinky")
	c.jobsAreConfined(t)

	c.scaleOperator(t, 1)
	annotate := func(value string) {
		t.Helper()
		c.namespace.MustRun(t, "annotate", "--overwrite", foreignResources["Controller"],
			"controller.slinky.slurm.net/take-over="+value)
	}
	annotate("true")
	c.namespace.Eventually(t, 2*time.Minute, "the question whether slurmds survive", func(ctx context.Context) error {
		return conditionIs(ctx, c.namespace, foreignResources["Controller"], "Ready",
			"False|NotTakenOver|the jobs of this cluster are confined with cgroups")
	})

	t.Log("the test that docs/migrate.md asks for")
	if out, err := c.login(t.Context(), "scontrol", "reconfigure"); err != nil {
		t.Fatalf("scontrol printed %q: %v", out, err)
	}
	c.jobsAreConfined(t)
	if err := c.jobIs(t.Context(), first, "JobState=RUNNING", "Restarts=0"); err != nil {
		t.Fatal(err)
	}

	annotate("confined")
	becomesReady(t, c.namespace, 4*time.Minute, "controller.slinky.slurm.net/slurm", "restapi/slurm", "accounting/slurm")
	c.keptState(t)
	c.replacesPods(t, first)
	jobs.stop(t)
	jobs.checkAllCompleted(t)
	c.jobsAreConfined(t)
	if mode := c.namespace.MustRun(t, "get", foreignResources["Controller"],
		"--output=jsonpath={.status.jobConfinement}"); mode != "Cgroups" {
		t.Errorf("the cluster has the mode %q", mode)
	}
}

// jobsAreConfined checks that a job has its own cgroup.
func (c *slurmCluster) jobsAreConfined(t *testing.T) {
	t.Helper()
	out, err := c.login(t.Context(), "srun", "--partition=slinky", "--mem=20M", "cat", "/proc/self/cgroup")
	if err != nil || !strings.Contains(out, "/step_") {
		t.Errorf("a job is in the cgroups %q: %v", out, err)
	}
}
