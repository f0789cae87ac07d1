package plan_test

import (
	"fmt"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// An edit changes one aspect of a scene.
type edit func(*plan.Snapshot)

// scene returns an edited snapshot of a NodeSet whose pods have been up and idle for an hour. Slurm was read a second
// ago.
func scene(pods int, edits ...edit) *plan.Snapshot {
	long, second := epoch.Add(-time.Hour), epoch.Add(-time.Second)
	s := &plan.Snapshot{
		Now: epoch, JustRead: true, Answers: true, DrainedSince: map[string]time.Time{},
		Set: plan.Set{
			Name: setName, UID: "set-1", Replicas: pods, Revision: "r1", Registration: 2 * time.Minute,
			Update: plan.Update{Replace: true, MaxUnavailable: 1},
		},
		KubernetesNodes: map[string]plan.KubernetesNode{
			"m1": {Wanted: true, Stays: true, Selected: true, SlurmNode: "gpu-m1"},
		},
		Slurm: &slurm.Snapshot{
			NodesAsOf: second, JobsAsOf: second, ControllerSince: long,
			Queue: slurm.Queue{Loads: map[string]slurm.Load{}},
		},
	}
	for i := range pods {
		name := fmt.Sprintf("gpu-%d", i)
		s.Pods = append(s.Pods, plan.Pod{
			Name: name, UID: "uid-" + name, SlurmNode: name, Ordinal: i, KubernetesNode: "m1", Revision: "r1",
			Created: long, EverRan: true, Started: long, ReadySince: long, Named: true,
		})
		owner := slurm.Owner{Namespace: "default", PodName: name, NodeSetName: setName, NodeSetUID: "set-1"}
		s.Slurm.Nodes = append(s.Slurm.Nodes, &slurm.Node{Name: name, State: slurm.StateIdle, Comment: owner.String()})
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// many combines edits.
func many(edits ...edit) edit {
	return func(s *plan.Snapshot) {
		for _, edit := range edits {
			edit(s)
		}
	}
}

func set(change func(*plan.Set)) edit { return func(s *plan.Snapshot) { change(&s.Set) } }

func pod(i int, change func(*plan.Pod)) edit { return func(s *plan.Snapshot) { change(&s.Pods[i]) } }

func record(i int, change func(*slurm.Node)) edit {
	return func(s *plan.Snapshot) { change(s.Slurm.Nodes[i]) }
}

// withoutRecord removes the record of a pod's Slurm node, long before the last snapshot.
func withoutRecord(i int) edit {
	return func(s *plan.Snapshot) {
		s.Slurm.Nodes = append(s.Slurm.Nodes[:i:i], s.Slurm.Nodes[i+1:]...)
		s.DrainedSince[s.Pods[i].SlurmNode] = epoch.Add(-time.Minute)
	}
}

// drained drains a Slurm node for a reason, long before the last snapshot.
func drained(i int, reason string) edit {
	return func(s *plan.Snapshot) {
		s.Slurm.Nodes[i].Flags |= slurm.FlagDrain
		s.Slurm.Nodes[i].Reason = reason
		s.DrainedSince[s.Slurm.Nodes[i].Name] = epoch.Add(-time.Minute)
	}
}

// cordoned cordons the Kubernetes node.
func cordoned(s *plan.Snapshot) {
	s.KubernetesNodes["m1"] = plan.KubernetesNode{
		Wanted: true, Stays: true, Selected: true, Drain: "Kubernetes node m1 is cordoned",
	}
}

// byUs returns the reason of a drain by the operator.
func byUs(why string) string { return slurm.OurReason(why) }

// busy adds a running job to a Slurm node; a length of zero is no time limit.
func busy(i int, length time.Duration) edit {
	return func(s *plan.Snapshot) {
		load := slurm.Load{Running: 1, Job: int64(100 + i), Unlimited: length == 0}
		if length > 0 {
			load.Until = epoch.Add(length)
		}
		s.Slurm.Loads[s.Pods[i].SlurmNode] = load
		s.Slurm.Nodes[i].State, s.Slurm.Nodes[i].AllocatedCPUs = slurm.StateMixed, 1
	}
}

// outdated gives a pod an older revision.
func outdated(pods ...int) edit {
	return func(s *plan.Snapshot) {
		for _, i := range pods {
			s.Pods[i].Revision = "r0"
		}
	}
}

// unready clears the readiness of a pod that has come up before.
func unready(i int) edit { return pod(i, func(pod *plan.Pod) { pod.ReadySince = time.Time{} }) }

// terminates makes a pod one that is being deleted, and whose containers must have exited some time ago.
func terminates(i int, ago time.Duration) edit {
	return pod(i, func(p *plan.Pod) { p.Terminating, p.Terminates = true, epoch.Add(-ago) })
}

// notResponding sets NOT_RESPONDING on a Slurm node.
func notResponding(i int) edit {
	return record(i, func(n *slurm.Node) { n.Flags |= slurm.FlagNotResponding })
}

// notStarted makes the first pod one that is scheduled and has not started.
func notStarted(s *plan.Snapshot) {
	pod := &s.Pods[0]
	pod.EverRan, pod.Started, pod.ReadySince, pod.Created = false, time.Time{}, time.Time{}, epoch.Add(-time.Second)
}
