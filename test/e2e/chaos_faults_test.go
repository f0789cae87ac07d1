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

// A fault breaks something, and returns what mends it.
type fault func(t *testing.T, day *day) (mend func() error)

// mended is for what mends itself, or is mended by the operator.
func mended() error { return nil }

// faults are those that cost no job, however long they last; in each, the day's work goes on.
var faults = map[string]fault{
	"the API server restarts":         restart("kube-apiserver"),
	"etcd stands still":               pause("etcd"),
	"the controller manager restarts": restart("kube-controller-manager"),
	"a kubelet stands still":          pause("node-2/kubelet"),
	"a machine's network is slow": func(t *testing.T, day *day) func() error {
		t.Helper()
		machine, err := day.machines.Node("node-1")
		if err == nil {
			err = day.machines.Delay(t.Context(), machine, 300*time.Millisecond)
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() error { return day.machines.Delay(t.Context(), machine, 0) }
	},
	"a machine's network is cut": func(t *testing.T, day *day) func() error {
		t.Helper()
		machine, err := day.machines.Node("node-2")
		if err == nil {
			err = machine.Wire.Cut(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() error { return machine.Wire.Heal(t.Context()) }
	},
	"a machine is cordoned again and again": func(t *testing.T, day *day) func() error {
		t.Helper()
		for range 5 {
			day.namespace.MustRun(t, "cordon", day.spare)
			day.moment(t, 2*time.Second)
			day.namespace.MustRun(t, "uncordon", day.spare)
			day.moment(t, 2*time.Second)
		}
		return mended
	},
	// Its pods stay when it is back before Kubernetes collects them, which takes it forty seconds.
	"a machine's Node is deleted": func(t *testing.T, day *day) func() error {
		t.Helper()
		day.namespace.MustRun(t, "delete", "node", day.spare)
		return func() error { return day.machines.Restart(t.Context(), day.spare+"/kubelet") }
	},
	"objects change all the time":              everythingIsTouched,
	"a machine is drained with kubectl":        drainedByKubectl,
	"an administrator marks a node as failing": markedAsFailing,
	"slurmctld loses the record of a node":     recordLost,
	"a quota allows no more pods":              quotaExhausted,
	"slurmrestd stands still": func(t *testing.T, day *day) func() error {
		t.Helper()
		day.signal(t, "deployment/slurm-restapi", "slurmrestd", "STOP")
		return func() error { day.signal(t, "deployment/slurm-restapi", "slurmrestd", "CONT"); return nil }
	},
	"slurmrestd is slow":                   answered(slowly),
	"slurmrestd fails":                     answered(with(500, "")),
	"slurmrestd refuses all tokens":        answered(with(511, `{"errors":[{"error_number":1007}]}`)),
	"slurmrestd talks nonsense in between": answered(withNonsense),
	"slurmrestd is deleted":                deleted("pods", "--selector=app.kubernetes.io/name=slurmrestd"),
	"slurmdbd is deleted":                  deleted("pods", "--selector=app.kubernetes.io/name=slurmdbd"),
	"the database is deleted":              deleted("pods", "--selector=app=mariadb"),
	"the ConfigMaps are deleted":           deleted("configmaps", "--selector=app.kubernetes.io/managed-by=slurm-operator"),
	"the Services are deleted":             deleted("services", "--selector=app.kubernetes.io/managed-by=slurm-operator"),
	"the budget is deleted":                deleted("poddisruptionbudgets", "--all"),
	"a token is deleted":                   deleted("secrets", "root-jwt-root"),
	"slurmdbd's configuration is deleted":  deleted("secrets", "slurm-accounting"),
	"the key of tokens is deleted":         deleted("secrets", "slurm-auth-jwt"),
	// An administrator puts it back from a pod, as the documentation says; that fails if somebody else has made another meanwhile.
	"the key of daemons is deleted": func(t *testing.T, day *day) func() error {
		t.Helper()
		day.namespace.MustRun(t, "delete", "secret", "slurm-auth-slurm")
		return func() error {
			key, err := day.namespace.Exec(t.Context(), "pod/slurm-controller-0", "cat", "/etc/slurm/slurm.key")
			file := filepath.Join(t.TempDir(), "slurm.key")
			if err = errors.Join(err, os.WriteFile(file, []byte(key), 0o600)); err == nil {
				_, err = day.namespace.Run(t.Context(), "create", "secret", "generic", "slurm-auth-slurm", "--from-file="+file)
			}
			return err
		}
	},
}

func pause(daemon string) fault {
	return func(t *testing.T, day *day) func() error {
		t.Helper()
		if err := day.machines.Pause(daemon); err != nil {
			t.Fatal(err)
		}
		return func() error { return day.machines.Continue(daemon) }
	}
}

func restart(daemon string) fault {
	return func(t *testing.T, day *day) func() error {
		t.Helper()
		return func() error { return day.machines.Restart(t.Context(), daemon) }
	}
}

func deleted(what ...string) fault {
	return func(t *testing.T, day *day) func() error {
		t.Helper()
		day.namespace.MustRun(t, append([]string{"delete", "--wait=false"}, what...)...)
		return mended
	}
}

// A disaster happens to the pod of a job and to its machine, or to slurmctld while jobs run.
type disaster struct {
	// strike returns when it is over. What it returns is done when all is well again.
	strike func(t *testing.T, day *day, pod string) (afterwards func() error)
	// costsTheFirst says that it ends the job, as whoever brought it about could know. Slurm puts the job into the queue again.
	costsTheFirst bool
}

// disasters are those that cost jobs, or whatever Slurm did in the seconds before, which no operator can help. They cost no others.
var disasters = map[string]disaster{
	"a kubelet is away":          kubeletAway,
	"slurmctld's clock is wrong": clockSkewed,
	"slurmctld is killed three times": {strike: func(t *testing.T, day *day, _ string) func() error {
		t.Helper()
		for range 3 {
			before := day.slurmctldStart(t)
			day.signal(t, "pod/slurm-controller-0", "slurmctld", "KILL")
			// The kubelet waits longer each time.
			day.namespace.Eventually(t, 6*time.Minute, "slurmctld started anew", func(context.Context) error {
				if now := day.slurmctldStart(t); now == before || strings.HasSuffix(now, "|") {
					return fmt.Errorf("it is %s", now)
				}
				return nil
			})
		}
		return mended
	}},
	"a node's pod is deleted by force": {costsTheFirst: true, strike: func(t *testing.T, day *day, pod string) func() error {
		t.Helper()
		day.namespace.MustRun(t, "delete", "pod", pod, "--force", "--grace-period=0")
		return mended
	}},
	"a machine is taken away": {costsTheFirst: true, strike: func(t *testing.T, day *day, pod string) func() error {
		t.Helper()
		uid := day.uids(t)[pod]
		day.namespace.MustRun(t, "delete", "node", day.spare)
		day.namespace.Eventually(t, 3*time.Minute, "Kubernetes to collect its pods", func(context.Context) error {
			if day.uids(t)[pod] == uid {
				return errors.New(pod + " is still there")
			}
			return nil
		})
		// Nobody needs it to come back, but it does, under its name.
		return func() error {
			if err := day.machines.Restart(t.Context(), day.spare+"/kubelet"); err != nil {
				return err
			}
			day.namespace.Eventually(t, time.Minute, "the machine to be back", func(ctx context.Context) error { return day.machineIs(ctx, "True") })
			return nil
		}
	}},
}

// theOperatorIsKilled kills the operator again and again, at any moment of its work. It does not elect a leader meanwhile: nearly all of the
// time between two kills would be spent on waiting for the lease of the dead one.
func (d *day) theOperatorIsKilled(t *testing.T) {
	electsALeader := func(enabled bool) {
		d.operator.MustHelm(t, "upgrade", "slurm-operator", "slurm-operator", "--reuse-values",
			fmt.Sprintf("--set=operator.leaderElection.enabled=%t", enabled), "--wait", "--timeout=10m")
	}
	electsALeader(false)
	defer electsALeader(true)
	var killed time.Time
	for range *kills {
		d.works(t)
		d.moment(t, 4*time.Second)
		killed = d.killOperator(t, "--selector=app.kubernetes.io/component=operator")
	}
	d.recovers(t, fmt.Sprintf("the operator is killed %d times", *kills), killed)
}

// theLeaderIsKilled has another replica take over in the middle of a chore.
func (d *day) theLeaderIsKilled(t *testing.T) {
	scale := func(replicas string) {
		d.operator.MustRun(t, "scale", "deployment/slurm-operator", "--replicas="+replicas)
		d.operator.MustRun(t, "rollout", "status", "deployment/slurm-operator", "--timeout=10m")
	}
	scale("2")
	defer scale("1")
	for range *failovers {
		d.works(t)
		d.moment(t, 2*time.Second)
		before := d.leader(t)
		killed := d.killOperator(t, before)
		d.namespace.Eventually(t, time.Minute, "another leader", func(context.Context) error {
			if d.leader(t) == before {
				return errors.New(before + " leads still")
			}
			return nil
		})
		d.recovers(t, "the leader is killed", killed)
	}
}

// leader is the pod of the operator that leads.
func (d *day) leader(t *testing.T) string {
	t.Helper()
	pod, _, _ := strings.Cut(d.operator.MustRun(t, "get", "lease/slurm-operator", "--output=jsonpath={.spec.holderIdentity}"), "_")
	return pod
}

// killOperator kills a pod of the operator where it stands, so that it gives nothing back, and waits until there are as many ready ones as
// before. Its pod is deleted, for the kubelet would start it later each time. It returns when it was killed.
func (d *day) killOperator(t *testing.T, which string) time.Time {
	t.Helper()
	if err := d.machines.Kill(d.operator.MustRun(t, "get", "pods", which, "--output=jsonpath={..metadata.uid}")); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	d.faults++
	d.operator.MustRun(t, "delete", "pods", which, "--force", "--grace-period=0")
	d.operator.MustRun(t, "rollout", "status", "deployment/slurm-operator", "--timeout=10m")
	return killed
}
