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

func (n *nodeSet) continuesWhenOperatorIsKilled(t *testing.T) {
	job := n.startJob(t, "--nodelist=gpu-0")
	n.scale(t, 2)
	if _, err := n.operator.Run(t.Context(), "delete", "pod", "--selector=app.kubernetes.io/component=operator",
		"--force", "--grace-period=0"); err != nil {
		t.Fatal(err)
	}
	n.namespace.Eventually(t, 2*time.Minute, "two pods, one of them with the job", func(ctx context.Context) error {
		names, err := n.pods(ctx)
		if err == nil && (len(names) != 2 || names[0] != "gpu-0") {
			err = fmt.Errorf("there are %v", names)
		}
		return err
	})
	n.finishJob(t, job)
	n.scale(t, defaultNodes)
	n.waitUntilAllIdle(t)
}

func (n *nodeSet) deletesNothingWhileSlurmctldHangs(t *testing.T) {
	before := n.uids(t)
	n.signalSlurmctld(t, "STOP")
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
	if now := n.uids(t); len(now) != defaultNodes {
		t.Errorf("the remaining pods are %v", now)
	}
	n.scale(t, defaultNodes)
	n.signalSlurmctld(t, "CONT")
	n.waitUntilAllIdle(t)
}

// signalSlurmctld sends a signal to slurmctld.
func (n *nodeSet) signalSlurmctld(t *testing.T, name string) {
	t.Helper()
	if _, err := n.namespace.Exec(t.Context(), "pod/slurm-controller-0", "sh", "-c",
		"for p in /proc/[0-9]*; do read -r c <$p/comm && [ $c = slurmctld ] && kill -"+name+" ${p#/proc/}; done; true"); err != nil {
		t.Fatal(err)
	}
}

// The Kubernetes node of a busy pod is lost for good: Slurm requeues the job, and the pod is re-created elsewhere.
func (n *nodeSet) replacesLostPod(t *testing.T) {
	own := ownCluster(t)
	victim := n.podsOn(t, n.spare)[0]
	node, err := own.Node(n.spare)
	if err != nil {
		t.Fatal(err)
	}
	job := n.startJob(t, "--requeue", "--nodelist="+victim)
	if err := node.Off(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost := time.Now()
	const outOfService = "node.kubernetes.io/out-of-service"
	defer func() {
		_, untainted := n.namespace.Run(t.Context(), "taint", "node", n.spare, outOfService+"-")
		if err := errors.Join(untainted, node.On()); err != nil {
			t.Fatal(err)
		}
		n.namespace.Eventually(t, 2*time.Minute, "the Kubernetes node to be ready",
			func(ctx context.Context) error { return n.spareNodeIs(ctx, "True") })
	}()
	n.namespace.Eventually(t, 3*time.Minute, "Kubernetes to notice the lost node",
		func(ctx context.Context) error { return n.spareNodeIs(ctx, "Unknown") })
	if _, err := n.namespace.Run(t.Context(), "taint", "node", n.spare,
		outOfService+"=nodeshutdown:NoExecute"); err != nil {
		t.Fatal(err)
	}
	n.namespace.Eventually(t, 3*time.Minute, "the pod elsewhere, its Slurm node idle and its job requeued",
		func(ctx context.Context) error {
			out, err := n.namespace.Run(ctx, "get", "pod", victim, "--output=jsonpath={.spec.nodeName}")
			if err == nil && (out == n.spare || out == "") {
				err = fmt.Errorf("it is on %q", out)
			}
			return errors.Join(err, n.sinfoShows(ctx, "gpu idle 4"), n.jobIs(ctx, job, "JobState=PENDING", "Restarts=1"))
		})
	t.Logf("%s: the pod is elsewhere and accepts jobs %.1f s after its Kubernetes node was lost", n.version,
		time.Since(lost).Seconds())
	if _, err := n.login(t.Context(), "scancel", job); err != nil {
		t.Fatal(err)
	}
	n.waitUntilAllIdle(t)
}

// spareNodeIs returns an error unless the Ready condition of the spare Kubernetes node has this status.
func (n *nodeSet) spareNodeIs(ctx context.Context, want string) error {
	out, err := n.namespace.Run(ctx, "get", "node", n.spare, "--output",
		`jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
	if err == nil && out != want {
		err = fmt.Errorf("its Ready condition is %s", out)
	}
	return err
}

// podsOn returns the pods of the set on a Kubernetes node.
func (n *nodeSet) podsOn(t *testing.T, node string) []string {
	t.Helper()
	pods := strings.Fields(n.namespace.MustRun(t, "get", "pods", "--selector=app.kubernetes.io/name=slurmd",
		"--field-selector=spec.nodeName="+node,
		"--output=jsonpath={.items[*].metadata.name}"))
	if len(pods) == 0 {
		t.Fatalf("no pod of the set is on %s", node)
	}
	return pods
}
