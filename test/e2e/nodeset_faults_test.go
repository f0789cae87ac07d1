//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func (n *nodeSet) goesOnWhenTheOperatorIsKilled(t *testing.T) {
	job := n.startsAJob(t, "--nodelist=gpu-0")
	n.scale(t, 2)
	if _, err := n.operator.Run(t.Context(), "delete", "pod", "--selector=app=slurm-operator", "--force", "--grace-period=0"); err != nil {
		t.Fatal(err)
	}
	n.namespace.Eventually(t, 2*time.Minute, "two pods, one of them with the job", func(ctx context.Context) error {
		names, err := n.pods(ctx)
		if err == nil && (len(names) != 2 || names[0] != "gpu-0") {
			err = fmt.Errorf("there are %v", names)
		}
		return err
	})
	n.endsTheJob(t, job)
	n.scale(t, wanted)
	n.isWhole(t)
}

func (n *nodeSet) deletesNothingWhileSlurmctldIsSilent(t *testing.T) {
	signal := func(name string) {
		if _, err := n.namespace.Exec(t.Context(), "pod/slurm-controller-0", "sh", "-c",
			"for p in /proc/[0-9]*; do read -r c <$p/comm && [ $c = slurmctld ] && kill -"+name+" ${p#/proc/}; done; true"); err != nil {
			t.Fatal(err)
		}
	}
	before := n.uids(t)
	signal("STOP")
	n.namespace.Eventually(t, 2*time.Minute, "the NodeSet to notice", func(ctx context.Context) error {
		return conditionIs(ctx, n.namespace, "nodeset/gpu", "SlurmReachable", "False")
	})
	n.scale(t, 0)
	n.namespace.Eventually(t, time.Minute, "the NodeSet to wait", func(ctx context.Context) error {
		return conditionIs(ctx, n.namespace, "nodeset/gpu", "ScaledIn", "False|WaitingForSlurm")
	})
	for name, uid := range n.uids(t) {
		if before[name] != uid {
			t.Errorf("%s was replaced", name)
		}
	}
	if now := n.uids(t); len(now) != wanted {
		t.Errorf("pods are left: %v", now)
	}
	n.scale(t, wanted)
	signal("CONT")
	n.isWhole(t)
}

// The machine of a busy pod is lost for good: Slurm begins the job again, and the pod comes back elsewhere.
func (n *nodeSet) replacesALostPod(t *testing.T) {
	own := ownCluster(t)
	victim := n.podAwayFromTheServices(t)
	machine := n.machineOf(t, victim)
	node, err := own.Node(machine)
	if err != nil {
		t.Fatal(err)
	}
	out, err := n.login(t.Context(), "sbatch", "--parsable", "--partition=gpu", "--requeue", "--job-name=lost", "--nodelist="+victim, "--output=/dev/null", "--wrap=sleep 20")
	if err != nil {
		t.Fatal(err)
	}
	job := strings.TrimSpace(out)
	n.namespace.Eventually(t, time.Minute, "a running job", func(ctx context.Context) error { return n.jobIs(ctx, job, "JobState=RUNNING") })
	if err := node.Off(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost := time.Now()
	n.namespace.Eventually(t, 3*time.Minute, "Kubernetes to miss the machine", func(ctx context.Context) error {
		out, err := n.namespace.Run(ctx, "get", "node", machine, "--output", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && out == "True" {
			err = errors.New("it is ready")
		}
		return err
	})
	const outOfService = "node.kubernetes.io/out-of-service"
	if _, err := n.namespace.Run(t.Context(), "taint", "node", machine, outOfService+"=nodeshutdown:NoExecute"); err != nil {
		t.Fatal(err)
	}
	n.namespace.Eventually(t, 4*time.Minute, "the pod elsewhere, and its node back", func(ctx context.Context) error {
		out, err := n.namespace.Run(ctx, "get", "pod", victim, "--output=jsonpath={.spec.nodeName}")
		if err == nil && (out == machine || out == "") {
			err = fmt.Errorf("it is on %q", out)
		}
		return errors.Join(err, n.sinfoShows(ctx, "gpu idle 4"), n.jobIs(ctx, job, "JobState=COMPLETED", "Restarts=1"))
	})
	t.Logf("%s: the pod is elsewhere and its job done again %.1f s after its machine was lost", n.version, time.Since(lost).Seconds())
	if _, err := n.namespace.Run(t.Context(), "taint", "node", machine, outOfService+"-"); err != nil {
		t.Fatal(err)
	}
	if err := node.On(); err != nil {
		t.Fatal(err)
	}
	n.isWhole(t)
}

// podAwayFromTheServices is a pod of the set on a machine that runs none of the cluster's services.
func (n *nodeSet) podAwayFromTheServices(t *testing.T) string {
	t.Helper()
	out, err := n.namespace.Run(t.Context(), "get", "pods", "--output", `jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.metadata.labels.app\.kubernetes\.io/name}{"\n"}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	operators, err := n.operator.Run(t.Context(), "get", "pods", "--output", `jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} operator{"\n"}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	candidates, services := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(out + operators) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[2] == "slurmd" {
			candidates[fields[0]] = fields[1]
		} else if len(fields) > 1 {
			services[fields[1]] = true
		}
	}
	for pod, machine := range candidates {
		if !services[machine] {
			return pod
		}
	}
	t.Skip("services run on every machine, and losing one would be another test")
	return ""
}
