//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	outage = flag.Duration("outage", 20*time.Second, "how long TestChaos stops a kubelet while a job runs; Kubernetes evicts after five minutes")
	queued = flag.Int("queued", 0, "how many jobs wait in the queue all through TestChaos")
)

// drainedByKubectl drains a Kubernetes node with kubectl, which evicts pods again and again until none is left, during a scale-in.
func drainedByKubectl(t *testing.T, day *day) func() error {
	t.Helper()
	day.replicas = wanted - 2
	day.scale(t, day.replicas)
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

// quotaExhausted lets Kubernetes refuse every new pod of the namespace during a rolling update, which deletes pods, and a scale-out.
func quotaExhausted(t *testing.T, day *day) func() error {
	t.Helper()
	day.namespace.MustRun(t, "create", "quota", "exhausted", "--hard=pods=0")
	day.namespace.Eventually(t, time.Minute, "the quota to be in force", func(ctx context.Context) error {
		out, err := day.namespace.Run(ctx, "get", "quota/exhausted", "--output=jsonpath={.status.hard.pods}")
		if err == nil && out != "0" {
			err = fmt.Errorf("it allows %q", out)
		}
		return err
	})
	day.patch(t, "nodeset/gpu", map[string]any{"extraConf": fmt.Sprintf("Weight=%d", 1000+day.chores)})
	day.replicas = wanted + 2
	day.scale(t, day.replicas)
	return func() error {
		_, err := day.namespace.Run(t.Context(), "delete", "quota/exhausted")
		return err
	}
}

// allowsSkew keeps Slurm's own daemons talking to each other when their clocks differ by more than a minute.
const allowsSkew = "AuthInfo=ttl=600"

// clockSkewed runs slurmctld with a clock that is ahead of the operator's, then with one that is behind, and scales in each time. It scales out
// with the right clock: a slurmd that starts does not know the ttl yet, and slurmctld refuses it.
var clockSkewed = disaster{strike: func(t *testing.T, day *day, _ string) func() error {
	t.Helper()
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err != nil || len(libraries) != 1 {
		t.Fatalf("libfaketime is not installed, see hack/install-packages: %v", libraries)
	}
	for _, skew := range []time.Duration{90 * time.Second, -90 * time.Second} {
		day.slurmctldRuns(t, skew, []any{
			map[string]any{"name": "LD_PRELOAD", "value": "/faketime/" + filepath.Base(libraries[0])},
			map[string]any{"name": "FAKETIME", "value": fmt.Sprintf("%+ds", int(skew.Seconds()))},
			map[string]any{"name": "FAKETIME_DONT_FAKE_MONOTONIC", "value": "1"},
		}, filepath.Dir(libraries[0]))
		day.replicas = wanted
		day.scale(t, day.replicas)
		day.isWell(t, 2*time.Minute)
		day.slurmctldRuns(t, 0, nil, filepath.Dir(libraries[0]))
		day.replicas = wanted + 2
		day.scale(t, day.replicas)
		day.isWell(t, 2*time.Minute)
	}
	day.replicas = wanted
	day.scale(t, day.replicas)
	return mended
}}

// slurmctldRuns starts slurmctld with environment variables and waits until its clock is off by as much as they say.
func (d *day) slurmctldRuns(t *testing.T, skew time.Duration, variables []any, libraries string) {
	t.Helper()
	d.patch(t, "controller.slinky.slurm.net/slurm", map[string]any{
		"slurmctld": map[string]any{"env": variables, "volumeMounts": []any{map[string]any{"name": "faketime", "mountPath": "/faketime"}}},
		"template": map[string]any{"spec": map[string]any{"volumes": []any{
			map[string]any{"name": "faketime", "hostPath": map[string]any{"path": libraries}},
		}}},
	})
	at := regexp.MustCompile(`sdiag output at .* \((\d+)\)`)
	d.namespace.Eventually(t, 3*time.Minute, fmt.Sprintf("a clock of slurmctld that is off by %s", skew), func(ctx context.Context) error {
		out, err := d.login(ctx, "sdiag")
		if err != nil {
			return err
		}
		match := at.FindStringSubmatch(out)
		if match == nil {
			return fmt.Errorf("sdiag says %q", out)
		}
		seconds, err := strconv.ParseInt(match[1], 10, 64)
		if is := time.Until(time.Unix(seconds, 0)); err == nil && (is-skew).Abs() > 15*time.Second {
			err = fmt.Errorf("it is off by %s", is)
		}
		return err
	})
	d.isWell(t, 2*time.Minute)
}

// startsAJobOnTheHostNetwork starts a job on a NodeSet with hostNetwork, and returns what proves at the end of the day that it still runs. A
// slurmd that is not found under the name of its pod would be released after the registrationTimeout.
func (d *day) startsAJobOnTheHostNetwork(t *testing.T) func(*testing.T) {
	t.Helper()
	elsewhere := "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " +
		"[{matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [" + d.spare + "]}]}]}}}"
	d.applyNodeSet(t, "bare", "replicas: 1", "registrationTimeout: 20s",
		"template: {spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, "+elsewhere+"}}")
	d.nodeShows(t, "bare-0", "State=IDLE")
	job := d.startsAJob(t, "--nodelist=bare-0", "--job-name=all-day")
	started := d.savesTheStart(t, job)
	return func(t *testing.T) {
		t.Helper()
		if err := d.jobIs(t.Context(), job, "JobState=RUNNING", "Restarts=0", started); err != nil {
			t.Error(err)
		}
		d.endsTheJob(t, job)
		d.deleteNodeSet(t, "bare")
	}
}

// queues fills the queue with jobs that wait for somebody to release them, each of them a record of its own.
func (d *day) queues(t *testing.T, jobs int) {
	t.Helper()
	if jobs == 0 {
		return
	}
	// With more than 10,000 jobs the operator counts them through slurmctld's metrics, as docs/slurm-client.md says.
	d.patch(t, "controller.slinky.slurm.net/slurm", map[string]any{
		"extraConf": d.extraConf(t) + fmt.Sprintf("\nMaxJobCount=%d", jobs+20000), "metrics": map[string]any{"enabled": true},
	})
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
