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
	outage = flag.Duration("outage", 20*time.Second,
		"how long TestChaos stops a kubelet while a job runs; Kubernetes evicts after five minutes")
	queued = flag.Int("queued", 0, "how many jobs are pending throughout TestChaos")
)

// drainedByKubectl drains a Kubernetes node with kubectl, which retries evictions until no pod is left, during a
// scale-in.
func drainedByKubectl(t *testing.T, run *chaosRun) func() error {
	t.Helper()
	run.resize(t, -2)
	ctx, stop := context.WithCancel(t.Context())
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		// It exits when all pods are gone or when it is stopped; either is fine.
		_, _ = run.namespace.Run(ctx, "drain", run.spare, "--pod-selector=app.kubernetes.io/name=slurmd",
			"--delete-emptydir-data", "--force", "--timeout=10m")
	}()
	return func() error {
		stop()
		<-drained
		_, err := run.namespace.Run(t.Context(), "uncordon", run.spare)
		return err
	}
}

// memoryExhausted lets jobs take more memory than their pods have, next to the stream's. Each of them must end alone.
func memoryExhausted(t *testing.T, run *chaosRun) func() error {
	t.Helper()
	run.command(t, "sbatch", "--quiet", "--job-name=hog", "--array=1-8", "--partition=gpu", "--mem=50",
		"--output=/dev/null", "--wrap=dd if=/dev/zero of=/dev/null bs=700M count=1")
	return func() error {
		run.namespace.Eventually(t, 3*time.Minute, "all hogs to be out of memory", func(ctx context.Context) error {
			states, err := run.login(ctx, "sacct", "--noheader", "--parsable2", "--allocations", "--name=hog", "--array",
				"--format=state")
			ended := strings.Count(states, "OUT_OF_MEMORY\n")
			if err == nil && (ended < 8 || ended < strings.Count(states, "\n")) {
				err = fmt.Errorf("they are %q", states)
			}
			return err
		})
		return nil
	}
}

// markedAsFailing sets a Slurm node to FAIL, as an administrator would. The operator must not change that state.
func markedAsFailing(t *testing.T, run *chaosRun) func() error {
	t.Helper()
	run.scontrol(t, "update", "nodename=gpu-0", "state=fail", "reason=XID 79")
	return func() error {
		run.foreign++
		out, err := run.login(t.Context(), "scontrol", "show", "node", "gpu-0")
		if err == nil && (!strings.Contains(out, "+FAIL") || !strings.Contains(out, "Reason=XID 79 [")) {
			run.foreignChanged++
			err = errors.New("the state that an administrator set on gpu-0 was changed: " + out)
		}
		run.scontrol(t, "update", "nodename=gpu-0", "state=resume")
		return err
	}
}

// recordLost deletes a node's record from slurmctld while its slurmd keeps running. A short registrationTimeout makes
// the node come back sooner than by default. The chore may be replacing or removing nodes, so any node will do.
func recordLost(t *testing.T, run *chaosRun) func() error {
	t.Helper()
	run.patch(t, "nodeset/gpu", map[string]any{"registrationTimeout": "20s"})
	var lost string
	run.namespace.Eventually(t, time.Minute, "a node to be drained", func(ctx context.Context) error {
		out, err := run.login(ctx, "sinfo", "--noheader", "--Node", "--partition=gpu", "--format=%N")
		nodes := strings.Fields(out)
		if err != nil || len(nodes) == 0 {
			return errors.Join(err, errors.New("the partition gpu has no nodes"))
		}
		lost = nodes[0]
		_, err = run.login(ctx, "scontrol", "update", "nodename="+lost, "state=drain", "reason=new disk")
		return err
	})
	run.namespace.Eventually(t, 2*time.Minute, lost+" to be deleted", func(ctx context.Context) error {
		_, err := run.login(ctx, "scontrol", "delete", "nodename="+lost)
		return err
	})
	return func() error {
		run.namespace.Eventually(t, 3*time.Minute, "a healthy cluster", run.findProblem)
		_, err := run.namespace.Run(t.Context(), "patch", "nodeset/gpu", "--type=merge", "--patch",
			`{"spec":{"registrationTimeout":"5m"}}`)
		return err
	}
}

// kubeletDown pauses the kubelet of the job's Kubernetes node for the time given by -outage. The job must keep running.
var kubeletDown = disaster{inject: func(t *testing.T, run *chaosRun, pod string) func() error {
	t.Helper()
	before := run.uids(t)[pod]
	daemon := run.spare + "/kubelet"
	if err := run.devcluster.Pause(daemon); err != nil {
		t.Fatal(err)
	}
	select {
	case <-t.Context().Done():
	case <-time.After(*outage):
	}
	deleted, err := run.namespace.Run(t.Context(), "get", "pod", pod,
		"--output=jsonpath={.metadata.uid} {.metadata.deletionTimestamp}")
	if err = errors.Join(err, run.devcluster.Continue(daemon)); err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(deleted) != before {
		t.Errorf("after %s without a kubelet the pod %s is %q", *outage, before, deleted)
	}
	run.namespace.Eventually(t, 2*time.Minute, "the Kubernetes node to be ready",
		func(ctx context.Context) error { return run.spareNodeIs(ctx, "True") })
	return noRepair
}}

// quotaExhausted makes a quota refuse every new pod in the namespace during a rolling update, which deletes pods, and a
// scale-out.
func quotaExhausted(t *testing.T, run *chaosRun) func() error {
	t.Helper()
	run.namespace.MustRun(t, "create", "quota", "exhausted", "--hard=pods=0")
	run.namespace.Eventually(t, time.Minute, "the quota to be in force", func(ctx context.Context) error {
		out, err := run.namespace.Run(ctx, "get", "quota/exhausted", "--output=jsonpath={.status.hard.pods}")
		if err == nil && out != "0" {
			err = fmt.Errorf("it allows %q", out)
		}
		return err
	})
	run.patch(t, "nodeset/gpu", map[string]any{"extraConf": fmt.Sprintf("Weight=%d", 1000+run.done)})
	run.resize(t, 2)
	return func() error {
		_, err := run.namespace.Run(t.Context(), "delete", "quota/exhausted")
		return err
	}
}

// allowsSkew lets Slurm's daemons accept each other's credentials when their clocks differ by more than a minute.
const allowsSkew = "AuthInfo=ttl=600"

// clockSkewed runs slurmctld with a clock ahead of the operator's, then with one behind it, and scales in each time. It
// scales out with the correct clock: a starting slurmd does not know the ttl yet, and slurmctld refuses it.
var clockSkewed = disaster{inject: func(t *testing.T, run *chaosRun, _ string) func() error {
	t.Helper()
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err != nil || len(libraries) != 1 {
		t.Fatalf("libfaketime is not installed, see hack/install-packages: %v", libraries)
	}
	for _, skew := range []time.Duration{90 * time.Second, -90 * time.Second} {
		run.slurmctldRuns(t, skew, []any{
			map[string]any{"name": "LD_PRELOAD", "value": "/faketime/" + filepath.Base(libraries[0])},
			map[string]any{"name": "FAKETIME", "value": fmt.Sprintf("%+ds", int(skew.Seconds()))},
			map[string]any{"name": "FAKETIME_DONT_FAKE_MONOTONIC", "value": "1"},
		}, filepath.Dir(libraries[0]))
		run.resize(t, 0)
		run.waitUntilHealthy(t, 2*time.Minute)
		run.slurmctldRuns(t, 0, nil, filepath.Dir(libraries[0]))
		run.resize(t, 2)
		run.waitUntilHealthy(t, 2*time.Minute)
	}
	run.resize(t, 0)
	return noRepair
}}

// slurmctldRuns restarts slurmctld with environment variables and waits until its clock is off by the given skew.
func (r *chaosRun) slurmctldRuns(t *testing.T, skew time.Duration, variables []any, libraries string) {
	t.Helper()
	r.patch(t, "controller.slinky.slurm.net/slurm", map[string]any{
		"slurmctld": map[string]any{
			"env": variables, "volumeMounts": []any{map[string]any{"name": "faketime", "mountPath": "/faketime"}},
		},
		"template": map[string]any{"spec": map[string]any{"volumes": []any{
			map[string]any{"name": "faketime", "hostPath": map[string]any{"path": libraries}},
		}}},
	})
	at := regexp.MustCompile(`sdiag output at .* \((\d+)\)`)
	r.namespace.Eventually(t, 3*time.Minute, fmt.Sprintf("slurmctld's clock to be off by %s", skew),
		func(ctx context.Context) error {
			out, err := r.login(ctx, "sdiag")
			if err != nil {
				return err
			}
			match := at.FindStringSubmatch(out)
			if match == nil {
				return fmt.Errorf("sdiag prints %q", out)
			}
			seconds, err := strconv.ParseInt(match[1], 10, 64)
			if is := time.Until(time.Unix(seconds, 0)); err == nil && (is-skew).Abs() > 15*time.Second {
				err = fmt.Errorf("it is off by %s", is)
			}
			return err
		})
	r.waitUntilHealthy(t, 2*time.Minute)
}

// startJobOnHostNetwork starts a job on a NodeSet with hostNetwork, and returns a function that checks at the end of
// the test that it still runs. A slurmd that is not registered under the name of its pod would be replaced after the
// registrationTimeout.
func (r *chaosRun) startJobOnHostNetwork(t *testing.T) func(*testing.T) {
	t.Helper()
	elsewhere := "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " +
		"[{matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [" + r.spare + "]}]}]}}}"
	r.applyNodeSet(t, "bare", "replicas: 1", "registrationTimeout: 20s",
		"template: {spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, "+elsewhere+"}}")
	r.nodeShows(t, "bare-0", "State=IDLE")
	job := r.startJob(t, "--nodelist=bare-0", "--job-name=all-day")
	started := r.waitForSavedStart(t, job)
	return func(t *testing.T) {
		t.Helper()
		if err := r.jobIs(t.Context(), job, "JobState=RUNNING", "Restarts=0", started); err != nil {
			t.Error(err)
		}
		r.finishJob(t, job)
		r.deleteNodeSet(t, "bare")
	}
}

// fillQueue fills the queue with held jobs, each a separate record.
func (r *chaosRun) fillQueue(t *testing.T, jobs int) {
	t.Helper()
	if jobs == 0 {
		return
	}
	// With more than 10,000 jobs the operator counts them through slurmctld's metrics, see docs/slurm-client.md.
	r.patch(t, "controller.slinky.slurm.net/slurm", map[string]any{
		"extraConf": r.extraConf(t) + fmt.Sprintf("\nMaxJobCount=%d", jobs+20000),
		"metrics":   map[string]any{"enabled": true},
	})
	r.configurationIs(t, "True|Applied")
	started := time.Now()
	const atOnce = 4
	r.command(t, "sh", "-c", fmt.Sprintf(
		`for part in $(seq %d); do (for job in $(seq %d); do sbatch --quiet --hold --job-name=waiting --output=/dev/null --wrap=true || exit 1; done) & done; wait`, atOnce, jobs/atOnce))
	out, err := r.login(t.Context(), "sh", "-c", "squeue --noheader --name=waiting | wc -l")
	if err != nil || strings.TrimSpace(out) != strconv.Itoa(jobs/atOnce*atOnce) {
		t.Fatalf("%s jobs are pending, want %d: %v", out, jobs, err)
	}
	t.Logf("%s: %d jobs queued in %.0f s", r.version, jobs, time.Since(started).Seconds())
}

// extraConf returns the Controller's spec.extraConf.
func (c *slurmCluster) extraConf(t *testing.T) string {
	t.Helper()
	return c.namespace.MustRun(t, "get", "controller.slinky.slurm.net/slurm", "--output=jsonpath={.spec.extraConf}")
}
