//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestClusterGrowth adds nodes with GPUs, their partition, and a partition over old and new nodes to a cluster under
// load, and removes the shared partition again while a job runs in it. slurmctld must not restart, and no gres.conf is
// needed.
func TestClusterGrowth(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			cluster := startServices(t, operator, "growth", version)
			cluster.applyNodeSet(t, "cpu", "replicas: 4", "partition: {enabled: true, config: State=UP}")
			cluster.configurationIs(t, "True|Applied")
			jobs := cluster.submitJobs(t, "growth", "cpu")
			running := cluster.startJob(t, "--partition=cpu", "--mem=64M")
			slurmctld := cluster.slurmctldStart(t)

			cluster.advertiseGPUs(t, 2)
			started := time.Now()
			cluster.applyNodeSet(t, "dgx", "replicas: 1", "partition: {enabled: true, config: State=UP}",
				"extraConf: CPUs=2",
				"template: {spec: {containers: [{name: slurmd, resources: {limits: {nvidia.com/gpu: 2}}}]}}")
			cluster.namespace.Eventually(t, time.Minute, "the new node",
				func(ctx context.Context) error { return cluster.sinfoShows(ctx, "dgx idle 1") })
			cluster.nodeShows(t, "dgx-0", "Gres=gpu:2")
			cluster.waitForGPUs(t)
			t.Logf("%s: a node with GPUs accepts jobs %.1f s after its NodeSet was applied", version,
				time.Since(started).Seconds())
			cluster.allocatesGPUs(t)
			cluster.addsSharedPartition(t)
			cluster.removesSharedPartition(t)

			if now := cluster.slurmctldStart(t); now != slurmctld {
				t.Errorf("slurmctld's container started at %s, and now at %s", slurmctld, now)
			}
			cluster.finishJob(t, running)
			jobs.stop(t)
			jobs.checkAllCompleted(t)
		})
	}
}

// advertiseGPUs advertises GPUs on all Kubernetes nodes, as a device plugin would. There are no device files: Slurm
// only counts them.
func (c *slurmCluster) advertiseGPUs(t *testing.T, count int) {
	t.Helper()
	const path = "/status/capacity/nvidia.com~1gpu"
	for node := range strings.FieldsSeq(c.namespace.MustRun(t, "get", "nodes",
		"--output=jsonpath={.items[*].metadata.name}")) {
		patch := func(ctx context.Context, operation string) error {
			_, err := c.namespace.Run(ctx, "patch", "node", node, "--subresource=status", "--type=json", "--patch",
				operation)
			return err
		}
		if err := patch(t.Context(), fmt.Sprintf(`[{"op":"add","path":%q,"value":"%d"}]`, path, count)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := patch(context.WithoutCancel(t.Context()),
				fmt.Sprintf(`[{"op":"remove","path":%q}]`, path)); err != nil {
				t.Error(err)
			}
		})
	}
}

// waitForGPUs waits until slurmctld has verified the GPUs that the node registered with.
func (c *slurmCluster) waitForGPUs(t *testing.T) {
	t.Helper()
	c.namespace.Eventually(t, time.Minute, "a node with GPUs", func(ctx context.Context) error {
		_, err := c.login(ctx, "sbatch", "--test-only", "--partition=dgx", "--gres=gpu:2", "--mem=64M", "--wrap=true")
		return err
	})
}

// allocatesGPUs checks that two jobs get one GPU each, that a third one waits, and that CUDA_VISIBLE_DEVICES names the
// GPU.
func (c *slurmCluster) allocatesGPUs(t *testing.T) {
	t.Helper()
	options := []string{"--partition=dgx", "--gres=gpu:1", "--mem=64M"}
	first, second := c.startJob(t, options...), c.startJob(t, options...)
	for job, gpu := range map[string]string{first: "GRES=gpu:1(IDX:0)", second: "GRES=gpu:1(IDX:1)"} {
		out, err := c.login(t.Context(), "scontrol", "show", "job", "--details", job)
		if err != nil || !strings.Contains(out, gpu) || !strings.Contains(out, "TresPerNode=gres/gpu:1") {
			t.Errorf("job %s does not have %s: %v\n%s", job, gpu, err, out)
		}
	}
	third := c.queueJob(t, options...)
	c.finishJob(t, second)
	c.namespace.Eventually(t, time.Minute, "completion of the third job",
		func(ctx context.Context) error { return c.jobIs(ctx, third, "JobState=COMPLETED", "Restarts=0") })
	out, err := c.login(t.Context(), "srun", "--partition=dgx", "--gpus=1", "--mem=64M", "printenv",
		"CUDA_VISIBLE_DEVICES")
	if err != nil || strings.TrimSpace(out) != "1" {
		t.Errorf("the job next to the one on GPU 0 sees %q: %v", out, err)
	}
	c.finishJob(t, first)
}

func (c *slurmCluster) addsSharedPartition(t *testing.T) {
	t.Helper()
	c.setExtraConf(t,
		"SlurmdTimeout=30\nPartitionName=all Nodes=ALL Default=YES State=UP\nPartitionName=both Nodes=cpu,dgx State=UP")
	c.configurationIs(t, "True|Applied")
	out, err := c.login(t.Context(), "srun", "--partition=both", "--nodelist=dgx-0", "--mem=64M", "hostname")
	if err != nil || strings.TrimSpace(out) != "dgx-0" {
		t.Errorf("srun in the new partition printed %q: %v", out, err)
	}
}

// removesSharedPartition removes the partition from the spec while one job runs in it and another is pending. Slurm
// would kill both, so the partition is drained first, and removed when both have completed.
func (c *slurmCluster) removesSharedPartition(t *testing.T) {
	t.Helper()
	running := c.startJob(t, "--partition=both", "--mem=64M")
	waiting := c.queueJob(t, "--partition=both", "--mem=64M", "--dependency=afterok:"+running)
	c.setExtraConf(t, "SlurmdTimeout=30\nPartitionName=all Nodes=ALL Default=YES State=UP")
	c.namespace.Eventually(t, time.Minute, "a drained partition", func(ctx context.Context) error {
		out, err := c.login(ctx, "scontrol", "show", "partition", "both")
		if err == nil && !strings.Contains(out, "State=DRAIN") {
			err = fmt.Errorf("it is %s", out)
		}
		return err
	})
	c.configurationIs(t, "True|Applied")
	if err := c.jobIs(t.Context(), running, "JobState=RUNNING", "Restarts=0"); err != nil {
		t.Error(err)
	}
	if out, err := c.login(t.Context(), "sbatch", "--partition=both", "--mem=64M", "--wrap=true"); err == nil {
		t.Errorf("the drained partition accepts a new job: %s", out)
	}
	c.finishJob(t, running)
	c.namespace.Eventually(t, time.Minute, "completion of the pending job", func(ctx context.Context) error {
		return c.jobIs(ctx, waiting, "JobState=COMPLETED", "Restarts=0")
	})
	c.namespace.Eventually(t, 2*time.Minute, "removal of the partition", func(ctx context.Context) error {
		out, err := c.login(ctx, "sinfo", "--noheader", "--format=%R")
		if err == nil && strings.Contains(out, "both") {
			err = fmt.Errorf("there are %q", out)
		}
		return err
	})
}
