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

	"github.com/slurm-operator/slurm-operator/hack/repo"
)

// TestBackup backs up a cluster, loses its slurmctld with its state to somebody who deletes the claim, and restores it, with the commands
// of docs/backup.md. Jobs that waited still wait, and one that ran all the while comes to its end.
func TestBackup(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			set := startNodeSet(t, operator, version)
			books := set.usersSubmit(t, "backup", "gpu")
			running := set.startsAJob(t, "--partition=gpu", "--mem=64M")
			waiting := set.queuesAJob(t, "--partition=gpu", "--mem=64M", "--dependency=afterok:"+running)
			books.close(t)
			books.balance(t)
			set.keepsItsStateUnderJobs(t)
			set.savesTheStart(t, running) // and the ends of the others, which would run again after a restore

			admin := set.administrator(t)
			admin.follows(t, "Back up")
			late := set.startsAJob(t, "--partition=gpu", "--mem=64M")
			spec := set.namespace.MustRun(t, "get", "controller.slinky.slurm.net/slurm", "--output=jsonpath={.spec}")
			set.losesItsState(t)
			started := time.Now()
			admin.follows(t, "Restore")
			set.namespace.Apply(t, []byte(`{"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Controller", "metadata": {"name": "slurm"}, "spec": `+spec+`}`))
			set.setExtraConf(t, "SlurmdTimeout=30\nFirstJobId=200000\nPartitionName=all Nodes=ALL Default=YES State=UP")

			set.namespace.Eventually(t, 3*time.Minute, "the jobs of the backup", func(ctx context.Context) error {
				return errors.Join(set.jobIs(ctx, running, "JobState=RUNNING", "Restarts=0"), set.jobIs(ctx, waiting, "JobState=PENDING", "Restarts=0"))
			})
			t.Logf("%s: jobs are back %.1f s after the restore began", version, time.Since(started).Seconds())
			set.namespace.Eventually(t, 2*time.Minute, "all to be well", func(ctx context.Context) error {
				return errors.Join(set.isReady(ctx, "controller.slinky.slurm.net/slurm"), set.isReady(ctx, "nodeset/gpu"), set.forgot(ctx, late))
			})
			set.endsTheJob(t, running)
			set.namespace.Eventually(t, time.Minute, "the end of the job that waited", func(ctx context.Context) error {
				return set.jobIs(ctx, waiting, "JobState=COMPLETED", "Restarts=0")
			})
			set.isWhole(t)
			after := set.usersSubmit(t, "restored", "gpu")
			set.endsTheJob(t, set.startsAJob(t, "--partition=gpu", "--mem=64M"))
			after.close(t)
			for _, job := range after.balance(t).Completed {
				if number, err := strconv.Atoi(job); err != nil || number < 200000 {
					t.Errorf("after the restore there is a job %s", job)
				}
			}
		})
	}
}

// keepsItsStateUnderJobs turns off that the state is kept while a job runs. slurmctld stays as it is until that is taken back.
func (n *nodeSet) keepsItsStateUnderJobs(t *testing.T) {
	t.Helper()
	uid := func() string {
		return n.namespace.MustRun(t, "get", "pod/slurm-controller-0", "--output=jsonpath={.metadata.uid}")
	}
	before := uid()
	n.patch(t, "controller.slinky.slurm.net/slurm", map[string]any{"persistence": map[string]any{"enabled": false}})
	n.degradedBy(t, "StateInUse")
	n.patch(t, "controller.slinky.slurm.net/slurm", map[string]any{"persistence": map[string]any{"enabled": true}})
	n.namespace.Eventually(t, time.Minute, "nothing amiss", func(ctx context.Context) error {
		return conditionIs(ctx, n.namespace, "controller.slinky.slurm.net/slurm", "Degraded", "False")
	})
	if after := uid(); after != before {
		t.Errorf("slurmctld's pod was replaced: %s became %s", before, after)
	}
}

// degradedBy waits until the Controller tells of a problem.
func (c *slurmCluster) degradedBy(t *testing.T, reason string) {
	t.Helper()
	c.namespace.Eventually(t, time.Minute, reason, func(ctx context.Context) error {
		return conditionIs(ctx, c.namespace, "controller.slinky.slurm.net/slurm", "Degraded", "True|"+reason)
	})
}

// losesItsState deletes the claim with slurmctld's saved state, and then ends slurmctld, which kept it. No slurmctld starts without it, nor
// with an empty one: it would have all jobs ended that run.
func (c *slurmCluster) losesItsState(t *testing.T) {
	t.Helper()
	c.namespace.MustRun(t, "delete", "persistentvolumeclaim/slurm-controller-state", "--wait=false")
	c.degradedBy(t, "StateBeingDeleted")
	c.namespace.MustRun(t, "delete", "pod/slurm-controller-0", "--timeout=10m")
	c.degradedBy(t, "StateLost")
	c.namespace.MustRun(t, "wait", "pod/slurm-controller-0", "--for=condition=PodScheduled=False", "--timeout=10m")
	c.namespace.Apply(t, []byte(`{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "slurm-controller-state"},
		"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}`))
	c.namespace.Eventually(t, time.Minute, "a slurmctld that says what it misses", func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", "controller.slinky.slurm.net/slurm", `--output=jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
		if err == nil && !strings.Contains(out, "does not hold the state that slurmctld had") {
			err = errors.New(out)
		}
		return err
	})
}

// forgot reports that slurmctld knows a job.
func (c *slurmCluster) forgot(ctx context.Context, job string) error {
	out, err := c.login(ctx, "squeue", "--noheader", "--format=%i")
	for found := range strings.FieldsSeq(out) {
		if found == job {
			return fmt.Errorf("job %s is in the queue", job)
		}
	}
	return err
}

// An administrator types what a document says, in a directory and a namespace.
type administrator struct{ document, directory, kubeconfig string }

// administrator is one of this cluster, who reads docs/backup.md.
func (c *slurmCluster) administrator(t *testing.T) administrator {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(filepath.Join(root, "docs", "backup.md"))
	if err != nil {
		t.Fatal(err)
	}
	admin := administrator{document: string(document), directory: t.TempDir()}
	admin.kubeconfig = filepath.Join(admin.directory, "kubeconfig")
	kubeconfig := c.namespace.MustRun(t, "config", "view", "--raw", "--flatten")
	if err := os.WriteFile(admin.kubeconfig, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	admin.types(t, "kubectl config set-context --current --namespace="+c.namespace.Name)
	return admin
}

// follows types everything that a section of the document says.
func (a administrator) follows(t *testing.T, heading string) {
	t.Helper()
	blocks := shellBlocks(a.document, heading)
	if len(blocks) == 0 {
		t.Fatalf("the document has nothing to type under %q", heading)
	}
	for _, block := range blocks {
		a.types(t, block)
	}
}

func (a administrator) types(t *testing.T, script string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "bash", "-euc", script)
	shell.Dir, shell.Env = a.directory, append(os.Environ(), "KUBECONFIG="+a.kubeconfig)
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}
