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

// A scale-in lowers spec.replicas long before busy pods can be deleted. The eviction API must still refuse to evict
// them, and kubectl drain must wait for their jobs.
func (n *nodeSet) refusesEvictionsDuringScaleIn(t *testing.T) {
	busy := []string{"gpu-1", "gpu-2", "gpu-3"}
	var jobs []string
	for _, pod := range busy {
		jobs = append(jobs, n.startJob(t, "--nodelist="+pod))
	}
	before := n.uids(t)
	n.scale(t, 1)
	n.hasPods(t, busy...)
	n.namespace.Eventually(t, time.Minute, "the disruption controller to observe the scale-in",
		func(ctx context.Context) error {
			out, err := n.namespace.Run(ctx, "get", "pdb/gpu",
				"--output=jsonpath={.metadata.generation} {.status.observedGeneration} {.status.currentHealthy} "+
					"{.status.disruptionsAllowed}")
			if fields := strings.Fields(out); err == nil &&
				(len(fields) != 4 || fields[0] != fields[1] || fields[2] != "3") {
				err = fmt.Errorf("the budget is %q", out)
			}
			return err
		})
	for _, pod := range busy {
		if _, err := n.namespace.Evict(t.Context(), pod, false); err == nil ||
			!strings.Contains(err.Error(), "disruption budget") {
			t.Fatalf("evicting %s, which has a job, returned %v", pod, err)
		}
	}
	node := n.kubernetesNodeOf(t, "gpu-2")
	drained := make(chan error, 1)
	go func() {
		_, err := n.namespace.Run(t.Context(), "drain", node, "--pod-selector=app.kubernetes.io/name=slurmd",
			"--delete-emptydir-data", "--force", "--timeout=5m")
		drained <- err
	}()
	defer n.namespace.MustRun(t, "uncordon", node)
	n.drainIs(t, "gpu-2", "slurm-operator: ")
	for i, pod := range busy {
		if now := n.uids(t)[pod]; now != before[pod] {
			t.Errorf("%s was %s and is %s", pod, before[pod], now)
		}
		if err := n.jobIs(t.Context(), jobs[i], "JobState=RUNNING", "Restarts=0"); err != nil {
			t.Error(err)
		}
		n.finishJob(t, jobs[i])
	}
	if err := <-drained; err != nil {
		t.Errorf("kubectl drain did not finish after the jobs: %v", err)
	}
	n.namespace.MustRun(t, "uncordon", node)
	n.scale(t, defaultNodes)
	n.waitUntilAllIdle(t)
}

// kubectl drain of a Kubernetes node without jobs completes, because the operator drains its Slurm nodes.
func (n *nodeSet) allowsEvictionOfIdlePods(t *testing.T) {
	n.namespace.MustRun(t, "drain", n.spare, "--pod-selector=app.kubernetes.io/name=slurmd", "--delete-emptydir-data",
		"--force", "--timeout=10m")
	n.namespace.MustRun(t, "uncordon", n.spare)
	n.waitUntilAllIdle(t)
}

// Node states that a person or Slurm has set survive everything that the operator does.
func (n *nodeSet) keepsForeignStates(t *testing.T) {
	n.scontrol(t, "update", "nodename=gpu-2", "state=fail", "reason=XID 79")
	// Once gpu-0 is drained for the second cordon, the operator has also handled the first one.
	failing, other := n.kubernetesNodeOf(t, "gpu-2"), n.kubernetesNodeOf(t, "gpu-0")
	n.namespace.MustRun(t, "cordon", failing)
	n.namespace.MustRun(t, "cordon", other)
	defer n.namespace.MustRun(t, "uncordon", failing, other)
	n.drainIs(t, "gpu-0", "slurm-operator: Kubernetes node "+other+" is cordoned")
	n.stateIs(t, "gpu-2", "FAIL", "XID 79")
	n.namespace.MustRun(t, "uncordon", failing, other)
	n.replacesAllPods(t, "Weight=9")
	n.stateIs(t, "gpu-2", "FAIL", "XID 79")
	n.scontrol(t, "update", "nodename=gpu-2", "state=resume")
	n.waitUntilAllIdle(t)
}

// scontrol runs scontrol as an administrator.
func (c *slurmCluster) scontrol(t *testing.T, arguments ...string) {
	t.Helper()
	if _, err := c.login(t.Context(), append([]string{"scontrol"}, arguments...)...); err != nil {
		t.Fatal(err)
	}
}

// stateIs checks that a Slurm node has a state and a reason.
func (c *slurmCluster) stateIs(t *testing.T, node, state, reason string) {
	t.Helper()
	out, err := c.login(t.Context(), "scontrol", "show", "node", node)
	if err != nil || !strings.Contains(out, "+"+state) || !strings.Contains(out, "Reason="+reason+" [") {
		t.Errorf("%s should be %s for %q: %v\n%s", node, state, reason, err, out)
	}
}

// slurmctld has lost the record of a node whose slurmd runs, as after a restore. The operator must bring the node back.
func (n *nodeSet) restoresLostRecord(t *testing.T) {
	n.patch(t, "nodeset/gpu", map[string]any{"registrationTimeout": "20s"})
	defer n.patch(t, "nodeset/gpu", map[string]any{"registrationTimeout": "5m"})
	job := n.startJob(t, "--nodelist=gpu-1")
	before := n.uids(t)
	n.scontrol(t, "delete", "nodename=gpu-2")
	n.namespace.Eventually(t, 3*time.Minute, "gpu-2 to be back", func(ctx context.Context) error {
		if n.uids(t)["gpu-2"] == before["gpu-2"] {
			return errors.New("its pod was not replaced")
		}
		return n.sinfoShows(ctx, "gpu idle 3")
	})
	if now := n.uids(t); now["gpu-0"] != before["gpu-0"] || now["gpu-1"] != before["gpu-1"] ||
		now["gpu-3"] != before["gpu-3"] {
		t.Errorf("the pods were %v and are %v", before, now)
	}
	if err := n.jobIs(t.Context(), job, "JobState=RUNNING", "Restarts=0"); err != nil {
		t.Error(err)
	}
	n.finishJob(t, job)
	n.waitUntilAllIdle(t)
}

// On the host network slurmd has the host name of its Kubernetes node, and must still register under the name of its
// pod.
func (c *slurmCluster) runsOnHostNetwork(t *testing.T) {
	c.applyNodeSet(t, "bare", "replicas: 1", "registrationTimeout: 20s",
		"template: {spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet}}")
	c.nodeShows(t, "bare-0", "State=IDLE")
	job := c.startJob(t, "--nodelist=bare-0")
	before := c.namespace.MustRun(t, "get", "pod", "bare-0", "--output=jsonpath={.metadata.uid}")
	c.namespace.MustRun(t, "scale", "nodeset/bare", "--replicas=0")
	c.nodeShows(t, "bare-0", "Reason=slurm-operator: scale-in")
	c.namespace.Eventually(t, time.Minute, "the scale-in to wait for the job", func(ctx context.Context) error {
		return conditionIs(ctx, c.namespace, "nodeset/bare", "ScaledIn",
			"False|Draining|waiting for 1 node: bare-0 runs job "+job)
	})
	if now := c.namespace.MustRun(t, "get", "pod", "bare-0", "--output=jsonpath={.metadata.uid}"); now != before {
		t.Errorf("the pod was %s and is %s", before, now)
	}
	if err := c.jobIs(t.Context(), job, "JobState=RUNNING", "Restarts=0"); err != nil {
		t.Error(err)
	}
	c.namespace.MustRun(t, "exec", "bare-0", "--", "touch", "/tmp/end-"+job)
	c.names(t, "pods", "bare")
	// Its record is deleted with it.
	c.namespace.Eventually(t, time.Minute, "no record of bare-0", func(ctx context.Context) error {
		out, err := c.login(ctx, "sinfo", "--noheader", "--Node", "--format=%N")
		if err == nil && strings.Contains(out, "bare-0") {
			err = fmt.Errorf("sinfo shows %q", out)
		}
		return err
	})
	c.deleteNodeSet(t, "bare")
}
