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

// A scale-in lowers the replicas of the spec long before busy pods can be deleted. The eviction API must refuse them all the same,
// and kubectl drain must wait for their jobs.
func (n *nodeSet) refusesEvictionsDuringAScaleIn(t *testing.T) {
	busy := []string{"gpu-1", "gpu-2", "gpu-3"}
	var jobs []string
	for _, pod := range busy {
		jobs = append(jobs, n.startsAJob(t, "--nodelist="+pod))
	}
	before := n.uids(t)
	n.scale(t, 1)
	n.hasPods(t, busy...)
	n.namespace.Eventually(t, time.Minute, "the disruption controller to have seen the scale-in", func(ctx context.Context) error {
		out, err := n.namespace.Run(ctx, "get", "pdb/gpu", "--output=jsonpath={.metadata.generation} {.status.observedGeneration} {.status.currentHealthy} {.status.disruptionsAllowed}")
		if fields := strings.Fields(out); err == nil && (len(fields) != 4 || fields[0] != fields[1] || fields[2] != "3") {
			err = fmt.Errorf("the budget is %q", out)
		}
		return err
	})
	for _, pod := range busy {
		if _, err := n.namespace.Evict(t.Context(), pod, false); err == nil || !strings.Contains(err.Error(), "disruption budget") {
			t.Fatalf("the eviction of %s, which has a job, was answered with %v", pod, err)
		}
	}
	machine := n.machineOf(t, "gpu-2")
	drained := make(chan error, 1)
	go func() {
		_, err := n.namespace.Run(t.Context(), "drain", machine, "--pod-selector=app.kubernetes.io/name=slurmd", "--delete-emptydir-data", "--force", "--timeout=5m")
		drained <- err
	}()
	defer n.namespace.MustRun(t, "uncordon", machine)
	n.drainIs(t, "gpu-2", "slurm-operator: ")
	for i, pod := range busy {
		if now := n.uids(t)[pod]; now != before[pod] {
			t.Errorf("%s was %s and is %s", pod, before[pod], now)
		}
		if err := n.jobIs(t.Context(), jobs[i], "JobState=RUNNING", "Restarts=0"); err != nil {
			t.Error(err)
		}
		n.endsTheJob(t, jobs[i])
	}
	if err := <-drained; err != nil {
		t.Errorf("kubectl drain did not end after the jobs: %v", err)
	}
	n.namespace.MustRun(t, "uncordon", machine)
	n.scale(t, wanted)
	n.isWhole(t)
}

// kubectl drain of a Kubernetes node without jobs goes through by itself, because the operator drains its Slurm nodes.
func (n *nodeSet) letsIdlePodsBeEvicted(t *testing.T) {
	n.namespace.MustRun(t, "drain", n.spare, "--pod-selector=app.kubernetes.io/name=slurmd", "--delete-emptydir-data", "--force", "--timeout=2m")
	n.namespace.MustRun(t, "uncordon", n.spare)
	n.isWhole(t)
}

// What a person or Slurm says about a node outlives everything that the operator does to it.
func (n *nodeSet) leavesForeignStatesAlone(t *testing.T) {
	n.says(t, "update", "nodename=gpu-2", "state=fail", "reason=XID 79")
	// Once gpu-0 is drained for the second cordon, the operator has also seen the first one.
	failing, other := n.machineOf(t, "gpu-2"), n.machineOf(t, "gpu-0")
	n.namespace.MustRun(t, "cordon", failing)
	n.namespace.MustRun(t, "cordon", other)
	defer n.namespace.MustRun(t, "uncordon", failing, other)
	n.drainIs(t, "gpu-0", "slurm-operator: Kubernetes node "+other+" is cordoned")
	n.stateIs(t, "gpu-2", "FAIL", "XID 79")
	n.namespace.MustRun(t, "uncordon", failing, other)
	n.replacesAllPods(t, "Weight=9")
	n.stateIs(t, "gpu-2", "FAIL", "XID 79")
	n.says(t, "update", "nodename=gpu-2", "state=resume")
	n.isWhole(t)
}

// says runs scontrol as an administrator.
func (c *slurmCluster) says(t *testing.T, arguments ...string) {
	t.Helper()
	if _, err := c.login(t.Context(), append([]string{"scontrol"}, arguments...)...); err != nil {
		t.Fatal(err)
	}
}

// stateIs holds that a node has a state and a reason.
func (c *slurmCluster) stateIs(t *testing.T, node, state, reason string) {
	t.Helper()
	out, err := c.login(t.Context(), "scontrol", "show", "node", node)
	if err != nil || !strings.Contains(out, "+"+state) || !strings.Contains(out, "Reason="+reason+" [") {
		t.Errorf("%s should be %s for %q: %v\n%s", node, state, reason, err, out)
	}
}

// slurmctld has lost the record of a node whose slurmd runs, as after a restore. The node comes back by itself.
func (n *nodeSet) bringsBackALostRecord(t *testing.T) {
	n.patch(t, "nodeset/gpu", map[string]any{"registrationTimeout": "20s"})
	defer n.patch(t, "nodeset/gpu", map[string]any{"registrationTimeout": "5m"})
	job := n.startsAJob(t, "--nodelist=gpu-1")
	before := n.uids(t)
	n.says(t, "delete", "nodename=gpu-2")
	n.namespace.Eventually(t, 3*time.Minute, "gpu-2 to be back", func(ctx context.Context) error {
		if n.uids(t)["gpu-2"] == before["gpu-2"] {
			return errors.New("its pod is the old one")
		}
		return n.sinfoShows(ctx, "gpu idle 3")
	})
	if now := n.uids(t); now["gpu-0"] != before["gpu-0"] || now["gpu-1"] != before["gpu-1"] || now["gpu-3"] != before["gpu-3"] {
		t.Errorf("the pods were %v and are %v", before, now)
	}
	if err := n.jobIs(t.Context(), job, "JobState=RUNNING", "Restarts=0"); err != nil {
		t.Error(err)
	}
	n.endsTheJob(t, job)
	n.isWhole(t)
}

// On the host's network slurmd has the host name of its Kubernetes node, and Slurm knows it by the name of its pod all the same.
func (c *slurmCluster) runsOnTheHostsNetwork(t *testing.T) {
	c.applyNodeSet(t, "bare", "replicas: 1", "registrationTimeout: 20s",
		"template: {spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet}}")
	c.nodeShows(t, "bare-0", "State=IDLE")
	job := c.startsAJob(t, "--nodelist=bare-0")
	before := c.namespace.MustRun(t, "get", "pod", "bare-0", "--output=jsonpath={.metadata.uid}")
	c.namespace.MustRun(t, "scale", "nodeset/bare", "--replicas=0")
	c.nodeShows(t, "bare-0", "Reason=slurm-operator: scale-in")
	c.namespace.Eventually(t, time.Minute, "the scale-in to wait for the job", func(ctx context.Context) error {
		return conditionIs(ctx, c.namespace, "nodeset/bare", "ScaledIn", "False|Draining|waiting for 1 node: bare-0 runs job "+job)
	})
	if now := c.namespace.MustRun(t, "get", "pod", "bare-0", "--output=jsonpath={.metadata.uid}"); now != before {
		t.Errorf("the pod was %s and is %s", before, now)
	}
	if err := c.jobIs(t.Context(), job, "JobState=RUNNING", "Restarts=0"); err != nil {
		t.Error(err)
	}
	c.namespace.MustRun(t, "exec", "bare-0", "--", "touch", "/tmp/end-"+job)
	c.names(t, "pods", "bare")
	// Its record goes with it.
	c.namespace.Eventually(t, time.Minute, "no record of bare-0", func(ctx context.Context) error {
		out, err := c.login(ctx, "sinfo", "--noheader", "--Node", "--format=%N")
		if err == nil && strings.Contains(out, "bare-0") {
			err = fmt.Errorf("sinfo shows %q", out)
		}
		return err
	})
	c.deleteNodeSet(t, "bare")
}
