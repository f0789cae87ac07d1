//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/document"
)

// TestRestoreFromBackup backs up a cluster, deletes the PVC with slurmctld's state, and restores it with the commands
// of docs/backup.md. Pending jobs are still pending, and a job that kept running completes.
func TestRestoreFromBackup(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			set := startNodeSet(t, operator, version)
			jobs := set.submitJobs(t, "backup", "gpu")
			running := set.startJob(t, "--partition=gpu", "--mem=64M")
			waiting := set.queueJob(t, "--partition=gpu", "--mem=64M", "--dependency=afterok:"+running)
			jobs.stop(t)
			jobs.checkAllCompleted(t)
			set.keepsStateWhileJobsRun(t)
			set.waitForSavedStart(t, running) // and the completed jobs, which would run again after a restore

			shell := set.shellFor(t, "docs/backup.md")
			shell.runSection(t, "Back up")
			late := set.startJob(t, "--partition=gpu", "--mem=64M")
			spec := set.namespace.MustRun(t, "get", "controller.slinky.slurm.net/slurm", "--output=jsonpath={.spec}")
			set.loseState(t)
			started := time.Now()
			shell.runSection(t, "Restore")
			shell.runSection(t, "Fill the volume")
			set.namespace.Apply(t,
				[]byte(`{"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Controller", "metadata": {"name": "slurm"}, "spec": `+spec+`}`))
			set.setExtraConf(t, "SlurmdTimeout=30\nFirstJobId=200000\nPartitionName=all Nodes=ALL Default=YES State=UP")

			set.namespace.Eventually(t, 3*time.Minute, "the jobs of the backup", func(ctx context.Context) error {
				return errors.Join(set.jobIs(ctx, running, "JobState=RUNNING", "Restarts=0"),
					set.jobIs(ctx, waiting, "JobState=PENDING", "Restarts=0"))
			})
			t.Logf("%s: jobs are back %.1f s after the restore began", version, time.Since(started).Seconds())
			set.namespace.Eventually(t, 2*time.Minute, "a healthy cluster", func(ctx context.Context) error {
				return errors.Join(set.isReady(ctx, "controller.slinky.slurm.net/slurm"),
					set.isReady(ctx, "nodeset/gpu"), set.forgot(ctx, late))
			})
			set.finishJob(t, running)
			set.namespace.Eventually(t, time.Minute, "completion of the pending job", func(ctx context.Context) error {
				return set.jobIs(ctx, waiting, "JobState=COMPLETED", "Restarts=0")
			})
			set.waitUntilAllIdle(t)
			after := set.submitJobs(t, "restored", "gpu")
			set.finishJob(t, set.startJob(t, "--partition=gpu", "--mem=64M"))
			after.stop(t)
			for _, job := range after.checkAllCompleted(t).Completed {
				if number, err := strconv.Atoi(job); err != nil || number < 200000 {
					t.Errorf("a job after the restore has id %s, below FirstJobId", job)
				}
			}
		})
	}
}

// keepsStateWhileJobsRun disables persistence while a job runs. slurmctld stays unchanged until that is reverted.
func (n *nodeSet) keepsStateWhileJobsRun(t *testing.T) {
	t.Helper()
	uid := func() string {
		return n.namespace.MustRun(t, "get", "pod/slurm-controller-0", "--output=jsonpath={.metadata.uid}")
	}
	before := uid()
	n.patch(t, "controller.slinky.slurm.net/slurm", map[string]any{"persistence": map[string]any{"enabled": false}})
	n.degradedBy(t, "StateInUse")
	n.patch(t, "controller.slinky.slurm.net/slurm", map[string]any{"persistence": map[string]any{"enabled": true}})
	n.namespace.Eventually(t, time.Minute, "no degraded condition", func(ctx context.Context) error {
		return conditionIs(ctx, n.namespace, "controller.slinky.slurm.net/slurm", "Degraded", "False")
	})
	if after := uid(); after != before {
		t.Errorf("slurmctld's pod was replaced: %s became %s", before, after)
	}
}

// degradedBy waits until the Controller is Degraded for a reason.
func (c *slurmCluster) degradedBy(t *testing.T, reason string) {
	t.Helper()
	c.namespace.Eventually(t, time.Minute, reason, func(ctx context.Context) error {
		return conditionIs(ctx, c.namespace, "controller.slinky.slurm.net/slurm", "Degraded", "True|"+reason)
	})
}

// loseState deletes the PVC with slurmctld's saved state, and then slurmctld's pod, which still uses it. slurmctld must
// not start without its state, nor with an empty volume: it would kill all running jobs.
func (c *slurmCluster) loseState(t *testing.T) {
	t.Helper()
	c.namespace.MustRun(t, "delete", "persistentvolumeclaim/slurm-controller-state", "--wait=false")
	c.degradedBy(t, "StateBeingDeleted")
	c.namespace.MustRun(t, "delete", "pod/slurm-controller-0", "--timeout=10m")
	c.degradedBy(t, "StateLost")
	c.namespace.MustRun(t, "wait", "pod/slurm-controller-0", "--for=condition=PodScheduled=False", "--timeout=10m")
	c.namespace.Apply(t, []byte(`{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "slurm-controller-state"},
		"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}`))
	c.namespace.Eventually(t, time.Minute, "slurmctld to report the missing state", func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", "controller.slinky.slurm.net/slurm",
			`--output=jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
		if err == nil && !strings.Contains(out, "does not contain the saved state of slurmctld") {
			err = errors.New(out)
		}
		return err
	})
}

// forgot returns an error if slurmctld still has a job.
func (c *slurmCluster) forgot(ctx context.Context, job string) error {
	out, err := c.login(ctx, "squeue", "--noheader", "--format=%i")
	for found := range strings.FieldsSeq(out) {
		if found == job {
			return fmt.Errorf("job %s is in the queue", job)
		}
	}
	return err
}

// A docShell runs the commands of a document, in a directory and a namespace.
type docShell struct{ document, directory, kubeconfig string }

// shellFor returns a shell for the commands of a document, in this cluster's namespace.
func (c *slurmCluster) shellFor(t *testing.T, path string) docShell {
	t.Helper()
	_, text := document.Read(t, path)
	shell := docShell{document: text, directory: t.TempDir()}
	shell.kubeconfig = filepath.Join(shell.directory, "kubeconfig")
	kubeconfig := c.namespace.MustRun(t, "config", "view", "--raw", "--flatten")
	if err := os.WriteFile(shell.kubeconfig, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	shell.run(t, "kubectl config set-context --current --namespace="+c.namespace.Name)
	return shell
}

// runSection runs all shell blocks of a section of the document.
func (s docShell) runSection(t *testing.T, heading string) {
	t.Helper()
	blocks := document.ShellBlocks(s.document, heading)
	if len(blocks) == 0 {
		t.Fatalf("the document has no shell blocks under %q", heading)
	}
	for _, block := range blocks {
		s.run(t, block)
	}
}

func (s docShell) run(t *testing.T, script string) {
	t.Helper()
	bash := exec.CommandContext(t.Context(), "bash", "-euc", script)
	bash.Dir, bash.Env = s.directory, append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	if out, err := bash.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}
