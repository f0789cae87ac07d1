//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A fault breaks something, and returns a function that repairs it.
type fault func(t *testing.T, run *chaosRun) (repair func() error)

// noRepair is for faults that need no repair, or that the operator repairs.
func noRepair() error { return nil }

// faults must not cost a job, however long they last. Each happens while an administrator's change is in progress.
var faults = map[string]fault{
	"the API server restarts":         restart("kube-apiserver"),
	"etcd hangs":                      pause("etcd"),
	"the controller manager restarts": restart("kube-controller-manager"),
	"a kubelet hangs":                 pause("node-2/kubelet"),
	"a Kubernetes node's network is slow": func(t *testing.T, run *chaosRun) func() error {
		t.Helper()
		node, err := run.devcluster.Node("node-1")
		if err == nil {
			err = run.devcluster.Delay(t.Context(), node, 300*time.Millisecond)
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() error { return run.devcluster.Delay(t.Context(), node, 0) }
	},
	"a Kubernetes node's network is cut": func(t *testing.T, run *chaosRun) func() error {
		t.Helper()
		node, err := run.devcluster.Node("node-2")
		if err == nil {
			err = node.Wire.Cut(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() error { return node.Wire.Heal(t.Context()) }
	},
	"a Kubernetes node is cordoned repeatedly": func(t *testing.T, run *chaosRun) func() error {
		t.Helper()
		for range 5 {
			run.namespace.MustRun(t, "cordon", run.spare)
			run.waitRandomly(t, 2*time.Second)
			run.namespace.MustRun(t, "uncordon", run.spare)
			run.waitRandomly(t, 2*time.Second)
		}
		return noRepair
	},
	// Its pods survive if it registers again before Kubernetes garbage-collects them, which happens after forty
	// seconds.
	"a Node object is deleted": func(t *testing.T, run *chaosRun) func() error {
		t.Helper()
		run.namespace.MustRun(t, "delete", "node", run.spare)
		return func() error { return run.devcluster.Restart(t.Context(), run.spare+"/kubelet") }
	},
	"objects change constantly":                      touchEverything,
	"a Kubernetes node is drained with kubectl":      drainedByKubectl,
	"an administrator marks a Slurm node as failing": markedAsFailing,
	"slurmctld loses a node record":                  recordLost,
	"a quota allows no more pods":                    quotaExhausted,
	"jobs take all memory":                           memoryExhausted,
	"slurmrestd hangs": func(t *testing.T, run *chaosRun) func() error {
		t.Helper()
		run.signal(t, "deployment/slurm-restapi", "slurmrestd", "STOP")
		return func() error { run.signal(t, "deployment/slurm-restapi", "slurmrestd", "CONT"); return nil }
	},
	"slurmrestd is slow":                   intercepted(delayed),
	"slurmrestd fails":                     intercepted(respond(500, "")),
	"slurmrestd refuses all tokens":        intercepted(respond(511, `{"errors":[{"error_number":1007}]}`)),
	"slurmrestd returns invalid responses": intercepted(alternateWithInvalid),
	"slurmrestd is deleted":                deleted("pods", "--selector=app.kubernetes.io/name=slurmrestd"),
	"slurmdbd is deleted":                  deleted("pods", "--selector=app.kubernetes.io/name=slurmdbd"),
	"the database is deleted":              deleted("pods", "--selector=app=mariadb"),
	"the ConfigMaps are deleted": deleted("configmaps",
		"--selector=app.kubernetes.io/managed-by=slurm-operator"),
	"the Services are deleted": deleted("services",
		"--selector=app.kubernetes.io/managed-by=slurm-operator"),
	"the PodDisruptionBudget is deleted":  deleted("poddisruptionbudgets", "--all"),
	"a token is deleted":                  deleted("secrets", "root-jwt-root"),
	"slurmdbd's configuration is deleted": deleted("secrets", "slurm-accounting"),
	"the JWT key is deleted":              deleted("secrets", "slurm-auth-jwths256"),
	// An administrator restores it from a pod, as documented; that fails if the operator has generated another key
	// meanwhile.
	"the auth/slurm key is deleted": func(t *testing.T, run *chaosRun) func() error {
		t.Helper()
		run.namespace.MustRun(t, "delete", "secret", "slurm-auth-slurm")
		return func() error {
			key, err := run.namespace.Exec(t.Context(), "pod/slurm-controller-0", "cat", "/etc/slurm/slurm.key")
			file := filepath.Join(t.TempDir(), "slurm.key")
			if err = errors.Join(err, os.WriteFile(file, []byte(key), 0o600)); err == nil {
				_, err = run.namespace.Run(t.Context(), "create", "secret", "generic", "slurm-auth-slurm",
					"--from-file="+file)
			}
			return err
		}
	},
}

func pause(daemon string) fault {
	return func(t *testing.T, run *chaosRun) func() error {
		t.Helper()
		if err := run.devcluster.Pause(daemon); err != nil {
			t.Fatal(err)
		}
		return func() error { return run.devcluster.Continue(daemon) }
	}
}

func restart(daemon string) fault {
	return func(t *testing.T, run *chaosRun) func() error {
		t.Helper()
		return func() error { return run.devcluster.Restart(t.Context(), daemon) }
	}
}

func deleted(what ...string) fault {
	return func(t *testing.T, run *chaosRun) func() error {
		t.Helper()
		run.namespace.MustRun(t, append([]string{"delete", "--wait=false"}, what...)...)
		return noRepair
	}
}

// A disaster hits a job's pod and its Kubernetes node, or slurmctld while jobs run.
type disaster struct {
	// inject returns when the disaster is over. The function that it returns runs after recovery.
	inject func(t *testing.T, run *chaosRun, pod string) (afterwards func() error)
	// losesFirstJob is set if the disaster kills the first job, so that Slurm requeues it.
	losesFirstJob bool
}

// disasters may cost the job they hit, or what Slurm did in the last seconds, which no operator can prevent. They must
// not cost any other job.
var disasters = map[string]disaster{
	"a kubelet is down":          kubeletDown,
	"slurmctld's clock is wrong": clockSkewed,
	"slurmctld is killed three times": {inject: func(t *testing.T, run *chaosRun, _ string) func() error {
		t.Helper()
		for range 3 {
			run.killSlurmctld(t)
		}
		return noRepair
	}},
	"a node's pod is force-deleted": {losesFirstJob: true,
		inject: func(t *testing.T, run *chaosRun, pod string) func() error {
			t.Helper()
			run.namespace.MustRun(t, "delete", "pod", pod, "--force", "--grace-period=0")
			return noRepair
		}},
	"a Kubernetes node is removed": {losesFirstJob: true,
		inject: func(t *testing.T, run *chaosRun, pod string) func() error {
			t.Helper()
			uid := run.uids(t)[pod]
			run.namespace.MustRun(t, "delete", "node", run.spare)
			run.namespace.Eventually(t, 3*time.Minute, "Kubernetes to garbage-collect its pods",
				func(context.Context) error {
					if run.uids(t)[pod] == uid {
						return errors.New(pod + " still exists")
					}
					return nil
				})
			// Recovery does not depend on it, but it registers again under the same name.
			return func() error {
				if err := run.devcluster.Restart(t.Context(), run.spare+"/kubelet"); err != nil {
					return err
				}
				run.namespace.Eventually(t, time.Minute, "the Kubernetes node to be ready",
					func(ctx context.Context) error { return run.spareNodeIs(ctx, "True") })
				return nil
			}
		}},
}

// killSlurmctld kills slurmctld, and waits until it has started again.
func (r *chaosRun) killSlurmctld(t *testing.T) {
	t.Helper()
	before := r.slurmctldStart(t)
	r.signal(t, "pod/slurm-controller-0", "slurmctld", "KILL")
	// The kubelet backs off longer each time.
	r.namespace.Eventually(t, 6*time.Minute, "slurmctld to restart", func(context.Context) error {
		if now := r.slurmctldStart(t); now == before || strings.HasSuffix(now, "|") {
			return fmt.Errorf("its start is %s", now)
		}
		return nil
	})
}

// killOperatorRepeatedly kills the operator at random points of its work. Leader election is off meanwhile: the
// operator would spend nearly all the time between two kills waiting for the old lease to expire.
func (r *chaosRun) killOperatorRepeatedly(t *testing.T) {
	setLeaderElection := func(enabled bool) {
		r.operator.MustHelm(t, "upgrade", "slurm-operator", "slurm-operator", "--reuse-values",
			fmt.Sprintf("--set=operator.leaderElection.enabled=%t", enabled), "--wait", "--timeout=10m")
	}
	setLeaderElection(false)
	defer setLeaderElection(true)
	var killed time.Time
	for range *kills {
		r.doChore(t)
		r.waitRandomly(t, 4*time.Second)
		killed = r.killOperator(t, "--selector=app.kubernetes.io/component=operator")
	}
	r.waitForRecovery(t, fmt.Sprintf("the operator is killed %d times", *kills), killed)
}

// killLeaderRepeatedly makes another replica take over in the middle of a chore.
func (r *chaosRun) killLeaderRepeatedly(t *testing.T) {
	scale := func(replicas string) {
		r.operator.MustRun(t, "scale", "deployment/slurm-operator", "--replicas="+replicas)
		r.operator.MustRun(t, "rollout", "status", "deployment/slurm-operator", "--timeout=10m")
	}
	scale("2")
	defer scale("1")
	for range *failovers {
		r.doChore(t)
		r.waitRandomly(t, 2*time.Second)
		before := r.leader(t)
		killed := r.killOperator(t, before)
		r.namespace.Eventually(t, time.Minute, "another leader", func(context.Context) error {
			if r.leader(t) == before {
				return errors.New(before + " is still the leader")
			}
			return nil
		})
		r.waitForRecovery(t, "the leader is killed", killed)
	}
}

// leader returns the operator pod that holds the lease.
func (r *chaosRun) leader(t *testing.T) string {
	t.Helper()
	pod, _, _ := strings.Cut(r.operator.MustRun(t, "get", "lease/slurm-operator",
		"--output=jsonpath={.spec.holderIdentity}"), "_")
	return pod
}

// killOperator kills a pod of the operator without a graceful shutdown, so that it releases nothing, and waits until
// the Deployment is ready again. It deletes the pod, because the kubelet would back off longer each time. It returns
// the time of the kill.
func (r *chaosRun) killOperator(t *testing.T, which string) time.Time {
	t.Helper()
	if err := r.devcluster.Kill(r.operator.MustRun(t, "get", "pods", which,
		"--output=jsonpath={..metadata.uid}")); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	r.faults++
	r.operator.MustRun(t, "delete", "pods", which, "--force", "--grace-period=0")
	r.operator.MustRun(t, "rollout", "status", "deployment/slurm-operator", "--timeout=10m")
	return killed
}
