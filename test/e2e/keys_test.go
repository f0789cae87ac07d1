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

// TestKeys changes the keys of a cluster as docs/keys.md says, while jobs run and wait.
func TestKeys(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			set := startNodeSet(t, operator, version)
			t.Run("a new JWT key is taken under way", set.takesANewJWTKey)
			t.Run("a new auth/slurm key is not taken under way", set.takesNoNewSlurmKey)
			t.Run("a new auth/slurm key is taken in a maintenance window", set.takesANewSlurmKey)
		})
	}
}

// takesANewJWTKey proves that neither jobs nor the operator's own work notice a new JWT key, nor does slurmctld restart.
func (n *nodeSet) takesANewJWTKey(t *testing.T) {
	books := n.usersSubmit(t, "jwt-key", "gpu")
	running := n.startsAJob(t, "--partition=gpu", "--mem=64M")
	slurmctld := n.slurmctldStart(t)
	t.Run("tokens are signed with it", n.rotatesTheKey)
	n.configurationIs(t, "True|Applied")
	n.resizesTo(t, wanted+1) // drains and deletions need tokens that Slurm takes
	n.resizesTo(t, wanted)
	if now := n.slurmctldStart(t); now != slurmctld {
		t.Errorf("slurmctld's container started at %s, and now at %s", slurmctld, now)
	}
	n.endsTheJob(t, running)
	books.close(t)
	books.balance(t)
}

// takesNoNewSlurmKey proves that a key which is changed by mistake costs no job, and that all is well when the old one is back.
func (n *nodeSet) takesNoNewSlurmKey(t *testing.T) {
	books := n.usersSubmit(t, "mistaken-key", "gpu")
	running := n.startsAJob(t, "--partition=gpu", "--mem=64M")
	before, old := n.precious(t), n.secret(t, "slurm-auth-slurm", "slurm.key")
	n.setSlurmKey(t, newSlurmKey())
	n.namespace.Eventually(t, time.Minute, "what is wrong", func(ctx context.Context) error {
		return conditionIs(ctx, n.namespace, "controller.slinky.slurm.net/slurm", "Degraded", "True|KeyMismatch")
	})
	if _, err := n.login(t.Context(), "srun", "--partition=gpu", "--mem=64M", "hostname"); err != nil {
		t.Errorf("the cluster does not go on with its key: %v", err)
	}
	if now := n.precious(t); now != before {
		t.Errorf("there were these pods\n%s\nand now\n%s", before, now)
	}
	n.setSlurmKey(t, old)
	n.namespace.Eventually(t, time.Minute, "all to be well", func(ctx context.Context) error {
		return errors.Join(n.isReady(ctx, "controller.slinky.slurm.net/slurm"), n.isReady(ctx, "nodeset/gpu"), n.isReady(ctx, "accounting/slurm"), n.isReady(ctx, "loginset/login"))
	})
	n.endsTheJob(t, running)
	books.close(t)
	books.balance(t)
}

// takesANewSlurmKey follows docs/keys.md. Jobs that wait are there afterwards, and everybody has the new key.
func (n *nodeSet) takesANewSlurmKey(t *testing.T) {
	books := n.usersSubmit(t, "window", "gpu")
	if _, err := n.login(t.Context(), "scontrol", "update", "nodename=ALL", "state=drain", "reason=new key"); err != nil {
		t.Fatal(err)
	}
	n.namespace.Eventually(t, time.Minute, "nodes without jobs", func(ctx context.Context) error { return n.sinfoShows(ctx, "gpu drain 4") })
	books.close(t)
	waiting := n.queuesAJob(t, "--partition=gpu", "--mem=64M")

	key := newSlurmKey()
	n.setSlurmKey(t, key)
	started := time.Now()
	n.namespace.MustRun(t, "delete", "configmap", "slurm-config")
	n.namespace.MustRun(t, "delete", "pods", "--selector=app.kubernetes.io/name in (slurmctld, slurmdbd, login, slurmd)", "--timeout=10m")
	n.namespace.Eventually(t, 3*time.Minute, "all to be well", func(ctx context.Context) error {
		for _, object := range []string{"accounting/slurm", "controller.slinky.slurm.net/slurm", "loginset/login"} {
			if err := n.isReady(ctx, object); err != nil {
				return err
			}
		}
		return n.sinfoShows(ctx, "gpu drain 4")
	})
	t.Logf("%s: %.1f s after the key was changed, all nodes are back", n.version, time.Since(started).Seconds())
	if _, err := n.login(t.Context(), "scontrol", "update", "nodename=ALL", "state=resume"); err != nil {
		t.Fatal(err)
	}
	n.isDigestEverywhere(t, key)
	n.namespace.Eventually(t, time.Minute, "the end of the job that waited", func(ctx context.Context) error {
		return n.jobIs(ctx, waiting, "JobState=COMPLETED", "Restarts=0")
	})
	books.balance(t)
	n.isWhole(t)
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

// isDigestEverywhere holds that all daemons have this key. That of a login pod can be read by sackd alone.
func (n *nodeSet) isDigestEverywhere(t *testing.T, key []byte) {
	t.Helper()
	sum := sha256.Sum256(key)
	for _, pod := range []string{"pod/slurm-controller-0", "pod/slurm-accounting-0", "pod/gpu-0", "pod/gpu-3"} {
		out, err := n.namespace.Exec(t.Context(), pod, "sha256sum", "/etc/slurm/slurm.key")
		if err != nil || !strings.HasPrefix(out, hex.EncodeToString(sum[:])) {
			t.Errorf("%s has another key: %s %v", pod, out, err)
		}
	}
}

// precious are the pods that jobs depend on, each with what makes it that one.
func (n *nodeSet) precious(t *testing.T) string {
	t.Helper()
	return n.namespace.MustRun(t, "get", "pods", "--selector=app.kubernetes.io/name in (slurmctld, slurmd)", "--sort-by=.metadata.name",
		"--output=jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{\"\\n\"}{end}")
}
