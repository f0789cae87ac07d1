//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	outage = flag.Duration("outage", 20*time.Second, "how long TestChaos stops a kubelet while a job runs; Kubernetes evicts after five minutes")
	queued = flag.Int("queued", 0, "how many jobs wait in the queue all through TestChaos")
)

// drainedByKubectl drains a machine with kubectl, which evicts pods again and again until none is left, in the middle of a chore.
func drainedByKubectl(t *testing.T, day *day) func() error {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		// It ends when all pods are gone, or when it is stopped: both are right.
		_, _ = day.namespace.Run(ctx, "drain", day.spare, "--pod-selector=app.kubernetes.io/name=slurmd", "--delete-emptydir-data", "--force", "--timeout=10m")
	}()
	return func() error {
		stop()
		<-drained
		_, err := day.namespace.Run(t.Context(), "uncordon", day.spare)
		return err
	}
}

// markedAsFailing has an administrator expect the failure of a node. Whatever the operator does meanwhile, that stays.
func markedAsFailing(t *testing.T, day *day) func() error {
	t.Helper()
	day.says(t, "update", "nodename=gpu-0", "state=fail", "reason=XID 79")
	return func() error {
		day.foreign++
		out, err := day.login(t.Context(), "scontrol", "show", "node", "gpu-0")
		if err == nil && (!strings.Contains(out, "+FAIL") || !strings.Contains(out, "Reason=XID 79 [")) {
			day.foreignChanged++
			err = errors.New("the state that an administrator gave gpu-0 was changed: " + out)
		}
		day.says(t, "update", "nodename=gpu-0", "state=resume")
		return err
	}
}

// recordLost takes the record of a node from slurmctld, whose slurmd goes on. It comes back sooner than it would by default.
func recordLost(t *testing.T, day *day) func() error {
	t.Helper()
	day.patch(t, "nodeset/gpu", map[string]any{"registrationTimeout": "20s"})
	day.says(t, "update", "nodename=gpu-1", "state=drain", "reason=new disk")
	day.namespace.Eventually(t, 2*time.Minute, "gpu-1 to be deleted", func(ctx context.Context) error {
		_, err := day.login(ctx, "scontrol", "delete", "nodename=gpu-1")
		return err
	})
	return func() error {
		day.namespace.Eventually(t, 3*time.Minute, "all to be well", day.ails)
		_, err := day.namespace.Run(t.Context(), "patch", "nodeset/gpu", "--type=merge", "--patch", `{"spec":{"registrationTimeout":"5m"}}`)
		return err
	}
}

// kubeletAway stops the kubelet of the job's machine for as long as is asked for. The job goes on.
var kubeletAway = disaster{strike: func(t *testing.T, day *day, pod string) func() error {
	t.Helper()
	before := day.uids(t)[pod]
	daemon := day.spare + "/kubelet"
	if err := day.machines.Pause(daemon); err != nil {
		t.Fatal(err)
	}
	select {
	case <-t.Context().Done():
	case <-time.After(*outage):
	}
	deleted, err := day.namespace.Run(t.Context(), "get", "pod", pod, "--output=jsonpath={.metadata.uid} {.metadata.deletionTimestamp}")
	if err = errors.Join(err, day.machines.Continue(daemon)); err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(deleted) != before {
		t.Errorf("after %s without a kubelet the pod %s is %q", *outage, before, deleted)
	}
	day.namespace.Eventually(t, 2*time.Minute, "the machine to be back", func(ctx context.Context) error { return day.machineIs(ctx, "True") })
	return mended
}}

// queues fills the queue with jobs that wait for somebody to release them, each of them a record of its own.
func (d *day) queues(t *testing.T, jobs int) {
	t.Helper()
	if jobs == 0 {
		return
	}
	d.patch(t, "controller.slinky.slurm.net/slurm", map[string]any{"extraConf": d.extraConf(t) + fmt.Sprintf("\nMaxJobCount=%d", jobs+20000)})
	d.configurationIs(t, "True|Applied")
	started := time.Now()
	const atOnce = 4
	d.command(t, "sh", "-c", fmt.Sprintf(
		`for part in $(seq %d); do (for job in $(seq %d); do sbatch --quiet --hold --job-name=waiting --output=/dev/null --wrap=true || exit 1; done) & done; wait`, atOnce, jobs/atOnce))
	out, err := d.login(t.Context(), "sh", "-c", "squeue --noheader --name=waiting | wc -l")
	if err != nil || strings.TrimSpace(out) != strconv.Itoa(jobs/atOnce*atOnce) {
		t.Fatalf("%s jobs wait instead of %d: %v", out, jobs, err)
	}
	t.Logf("%s: %d jobs queued in %.0f s", d.version, jobs, time.Since(started).Seconds())
}

// extraConf is what the Controller has of its own.
func (c *slurmCluster) extraConf(t *testing.T) string {
	t.Helper()
	return c.namespace.MustRun(t, "get", "controller.slinky.slurm.net/slurm", "--output=jsonpath={.spec.extraConf}")
}
