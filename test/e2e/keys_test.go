//go:build e2e

package e2e_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestKeyRotation rotates the keys of a cluster as described in docs/keys.md, with running and pending jobs.
func TestKeyRotation(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			set := startNodeSet(t, operator, version)
			t.Run("the JWT key is rotated under load", set.rotatesJWTKeyUnderLoad)
			t.Run("the auth/slurm key is not rotated under load", set.ignoresNewSlurmKey)
			t.Run("the auth/slurm key is rotated in a maintenance window", set.rotatesSlurmKey)
		})
	}
}

// rotatesJWTKeyUnderLoad proves that neither jobs nor the operator's own work notice a new JWT key, nor does slurmctld
// restart.
func (n *nodeSet) rotatesJWTKeyUnderLoad(t *testing.T) {
	jobs := n.submitJobs(t, "jwt-key", "gpu")
	running := n.startJob(t, "--partition=gpu", "--mem=64M")
	slurmctld := n.slurmctldStart(t)
	t.Run("tokens are signed with it", n.rotatesJWTKey)
	n.configurationIs(t, "True|Applied")
	n.resizeTo(t, defaultNodes+1) // drains and deletions need tokens that Slurm accepts
	n.resizeTo(t, defaultNodes)
	if now := n.slurmctldStart(t); now != slurmctld {
		t.Errorf("slurmctld's container started at %s, and now at %s", slurmctld, now)
	}
	n.finishJob(t, running)
	jobs.stop(t)
	jobs.checkAllCompleted(t)
}

// ignoresNewSlurmKey checks that a key changed by mistake costs no job, and that the cluster recovers when the old one
// is restored.
func (n *nodeSet) ignoresNewSlurmKey(t *testing.T) {
	jobs := n.submitJobs(t, "mistaken-key", "gpu")
	running := n.startJob(t, "--partition=gpu", "--mem=64M")
	before, old := n.jobPods(t), n.secret(t, "slurm-auth-slurm", "slurm.key")
	n.setSlurmKey(t, newSlurmKey())
	n.namespace.Eventually(t, time.Minute, "KeyMismatch", func(ctx context.Context) error {
		return conditionIs(ctx, n.namespace, "controller.slinky.slurm.net/slurm", "Degraded", "True|KeyMismatch")
	})
	if _, err := n.login(t.Context(), "srun", "--partition=gpu", "--mem=64M", "hostname"); err != nil {
		t.Errorf("the cluster does not continue with its old key: %v", err)
	}
	if now := n.jobPods(t); now != before {
		t.Errorf("the pods were\n%s\nand are now\n%s", before, now)
	}
	n.setSlurmKey(t, old)
	n.namespace.Eventually(t, time.Minute, "a healthy cluster", func(ctx context.Context) error {
		return errors.Join(n.isReady(ctx, "controller.slinky.slurm.net/slurm"), n.isReady(ctx, "nodeset/gpu"),
			n.isReady(ctx, "accounting/slurm"), n.isReady(ctx, "loginset/login"))
	})
	n.finishJob(t, running)
	jobs.stop(t)
	jobs.checkAllCompleted(t)
}

// rotatesSlurmKey follows docs/keys.md. Pending jobs survive, and all daemons have the new key.
func (n *nodeSet) rotatesSlurmKey(t *testing.T) {
	jobs := n.submitJobs(t, "window", "gpu")
	if _, err := n.login(t.Context(), "scontrol", "update", "nodename=ALL", "state=drain",
		"reason=new key"); err != nil {
		t.Fatal(err)
	}
	n.namespace.Eventually(t, time.Minute, "nodes without jobs",
		func(ctx context.Context) error { return n.sinfoShows(ctx, "gpu drain 4") })
	jobs.stop(t)
	waiting := n.queueJob(t, "--partition=gpu", "--mem=64M")

	key := newSlurmKey()
	n.setSlurmKey(t, key)
	started := time.Now()
	n.namespace.MustRun(t, "delete", "configmap", "slurm-config")
	n.namespace.MustRun(t, "delete", "pods",
		"--selector=app.kubernetes.io/name in (slurmctld, slurmdbd, login, slurmd)", "--timeout=10m")
	n.namespace.Eventually(t, 3*time.Minute, "a healthy cluster", func(ctx context.Context) error {
		for _, object := range []string{"accounting/slurm", "controller.slinky.slurm.net/slurm", "loginset/login"} {
			if err := n.isReady(ctx, object); err != nil {
				return err
			}
		}
		return n.sinfoShows(ctx, "gpu drain 4")
	})
	t.Logf("%s: all nodes are back %.1f s after the key was changed", n.version, time.Since(started).Seconds())
	if _, err := n.login(t.Context(), "scontrol", "update", "nodename=ALL", "state=resume"); err != nil {
		t.Fatal(err)
	}
	n.checkSlurmKey(t, key)
	n.namespace.Eventually(t, time.Minute, "completion of the pending job", func(ctx context.Context) error {
		return n.jobIs(ctx, waiting, "JobState=COMPLETED", "Restarts=0")
	})
	jobs.checkAllCompleted(t)
	n.waitUntilAllIdle(t)
	t.Run("a job runs on all nodes", n.runsOnAllNodes)
}

func newSlurmKey() []byte {
	key := make([]byte, 1024)
	_, _ = rand.Read(key)
	return key
}

func (n *nodeSet) setSlurmKey(t *testing.T, key []byte) {
	t.Helper()
	n.namespace.MustRun(t, "patch", "secret/slurm-auth-slurm", "--type=merge", "--patch",
		fmt.Sprintf(`{"data":{"slurm.key":%q}}`, base64.StdEncoding.EncodeToString(key)))
}

// checkSlurmKey checks that all daemons have this key. In a login pod only sackd can read it.
func (n *nodeSet) checkSlurmKey(t *testing.T, key []byte) {
	t.Helper()
	sum := sha256.Sum256(key)
	for _, pod := range []string{"pod/slurm-controller-0", "pod/slurm-accounting-0", "pod/gpu-0", "pod/gpu-3"} {
		out, err := n.namespace.Exec(t.Context(), pod, "sha256sum", "/etc/slurm/slurm.key")
		if err != nil || !strings.HasPrefix(out, hex.EncodeToString(sum[:])) {
			t.Errorf("%s has another key: %s %v", pod, out, err)
		}
	}
}

// jobPods lists the pods that jobs depend on, with their UIDs.
func (n *nodeSet) jobPods(t *testing.T) string {
	t.Helper()
	return n.namespace.MustRun(t, "get", "pods", "--selector=app.kubernetes.io/name in (slurmctld, slurmd)",
		"--sort-by=.metadata.name",
		"--output=jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{\"\\n\"}{end}")
}
