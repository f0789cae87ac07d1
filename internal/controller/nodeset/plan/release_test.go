package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// TestRelease goes through the checks of the deletion rule, each both ways.
func TestRelease(t *testing.T) {
	drained0 := drained(0, byUs("scale-in"))
	down0 := record(0, func(n *slurm.Node) { n.State, n.Reason = slurm.StateDown, "Not responding" })
	unnamed := pod(0, func(p *plan.Pod) { p.Named = false })
	looked := func(jobs, nodes time.Duration) edit {
		return func(s *plan.Snapshot) {
			s.Slurm.JobsAsOf, s.Slurm.NodesAsOf = epoch.Add(-jobs), epoch.Add(-nodes)
		}
	}
	slurmctldSince := func(ago time.Duration) edit {
		return func(s *plan.Snapshot) { s.Slurm.ControllerSince = epoch.Add(-ago) }
	}
	for name, test := range map[string]struct {
		edit edit
		want plan.HoldKind
	}{
		"releases a node that Slurm has just shown drained and empty": {drained0, plan.NotHeld},
		"releases a node that somebody else has drained":              {drained(0, "broken fan"), plan.NotHeld},
		"releases a node that is drained and down": {
			many(drained0, record(0, func(n *slurm.Node) { n.State = slurm.StateDown })), plan.NotHeld,
		},
		"holds a node that is not drained": {many(), plan.Undrained},
		"releases a node that is down": {
			many(down0, drainedAt(-time.Minute)), plan.NotHeld,
		},
		"holds a node that was just seen down": {
			many(down0, drainedAt(-time.Second)), plan.Unproven,
		},
		"releases a node that an administrator expects to fail": {
			many(failing(0), drainedAt(-time.Minute)), plan.NotHeld,
		},
		"holds a failing node with a running job": {
			many(failing(0), drainedAt(-time.Minute), busy(0, time.Hour)), plan.Jobs,
		},
		"holds a drained node with a running job": {
			many(drained0, busy(0, time.Hour)), plan.Jobs,
		},
		"holds a drained node whose job is only in the list of jobs": {
			many(drained0, func(s *plan.Snapshot) { s.Slurm.Loads["gpu-0"] = slurm.Load{Other: 1} }), plan.Jobs,
		},
		"holds a drained node whose job is being cleaned up": {
			many(drained0, func(s *plan.Snapshot) { s.Slurm.Loads["gpu-0"] = slurm.Load{Completing: 1} }), plan.Jobs,
		},
		"holds a drained node that is COMPLETING without any known job": {
			many(drained0, record(0, func(n *slurm.Node) { n.Flags |= slurm.FlagCompleting })), plan.Jobs,
		},
		"holds a drained node with memory allocated": {
			many(drained0, record(0, func(n *slurm.Node) { n.AllocatedMemory = 1 })), plan.Jobs,
		},
		"holds a drained node in a state that is not understood": {
			many(drained0, record(0, func(n *slurm.Node) { n.State = slurm.StateUnknown })), plan.Jobs,
		},

		"holds when Slurm does not answer": {
			many(drained0, func(s *plan.Snapshot) { s.Answers = false }), plan.Silent,
		},
		"holds when nothing was ever seen of Slurm": {func(s *plan.Snapshot) { s.Slurm = nil }, plan.Silent},
		"holds when the nodes were listed too long ago": {
			many(drained0, looked(0, plan.MaxSnapshotAge)), plan.Unproven,
		},
		"holds when the jobs were listed too long ago": {
			many(drained0, looked(plan.MaxSnapshotAge, 0)), plan.Unproven,
		},
		"releases when both lists are just young enough": {
			many(drained0, looked(plan.MaxSnapshotAge-1, plan.MaxSnapshotAge-1)), plan.NotHeld,
		},
		"holds when the jobs are from before the drain": {
			many(drained0, looked(3*time.Second, time.Second), drainedAt(-2*time.Second)), plan.Unproven,
		},
		"holds when the drain was just seen": {many(drained0, drainedAt(-time.Second)), plan.Unproven},
		"releases when all was listed after the drain": {
			many(drained0, looked(2*time.Second, time.Second), drainedAt(-3*time.Second)), plan.NotHeld,
		},
		"holds when the look was not taken for it": {
			many(drained0, func(s *plan.Snapshot) { s.JustRead = false }), plan.Unproven,
		},
		"says that an old look is old rather than a job": {
			many(drained0, busy(0, time.Hour), looked(time.Hour, time.Hour)), plan.Unproven,
		},
		"holds when nobody knows since when it is drained": {
			many(drained0, func(s *plan.Snapshot) { s.DrainedSince = nil }), plan.Unproven,
		},
		"holds when nobody knows since when it is unknown": {
			many(forgotten(0), func(s *plan.Snapshot) { s.DrainedSince = nil }), plan.Unproven,
		},

		"releases what waives its jobs": {
			many(busy(0, 0), set(func(set *plan.Set) { set.Waived = true })), plan.NotHeld,
		},
		"releases what has ended, whatever Slurm says": {
			many(busy(0, 0), pod(0, func(p *plan.Pod) { p.Ended = true })), plan.NotHeld,
		},
		"holds what has ended as soon as it was made": {
			pod(0, func(p *plan.Pod) { p.Ended, p.Created = true, epoch.Add(-time.Second) }), plan.ExitedEarly,
		},
		"releases what no Kubernetes node has, without Slurm": {
			many(newborn, pod(0, func(p *plan.Pod) { p.Unplaced = true }), func(s *plan.Snapshot) { s.Slurm = nil }),
			plan.NotHeld,
		},
		"holds what may have started, without Slurm": {
			many(newborn, func(s *plan.Snapshot) { s.Answers = false }), plan.Silent,
		},
		"holds what has not started as far as is reported":  {many(newborn, busy(0, time.Hour)), plan.Jobs},
		"holds what has not started and has an open record": {newborn, plan.Undrained},

		"releases what has not started and is unknown to Slurm": {many(newborn, forgotten(0)), plan.NotHeld},
		"holds what is unknown to a slurmctld that just started": {
			many(forgotten(0), slurmctldSince(time.Minute)), plan.Registering,
		},
		"holds what is unknown while slurmctld knows no start": {
			many(forgotten(0), func(s *plan.Snapshot) { s.Slurm.ControllerSince = time.Time{} }), plan.Unproven,
		},
		"holds what has just started and has to register": {
			many(forgotten(0), pod(0, func(p *plan.Pod) { p.Started = epoch.Add(-time.Minute) })), plan.Registering,
		},
		"releases what never registered in its time":      {many(forgotten(0)), plan.NotHeld},
		"holds what may be registered under another name": {many(forgotten(0), unnamed), plan.Unidentified},
		"releases what was not told its name and was seen by it": {
			many(forgotten(0), unnamed, pod(0, func(p *plan.Pod) { p.Registered = true })), plan.NotHeld,
		},
		"releases what was not told its name and never ran": {many(forgotten(0), unnamed, newborn), plan.NotHeld},
		"holds what is unknown and has a job all the same": {
			many(forgotten(0), func(s *plan.Snapshot) { s.Slurm.Loads["gpu-0"] = slurm.Load{Running: 1} }), plan.Jobs,
		},
		"holds what was first missed by the last look": {
			many(forgotten(0), drainedAt(-time.Second)), plan.Unproven,
		},
		"holds what is unknown when the look is old": {
			many(forgotten(0), looked(time.Minute, time.Minute)), plan.Unproven,
		},
		"holds what has not started and a crash may have dropped": {
			many(newborn, forgotten(0), slurmctldSince(time.Minute)), plan.Registering,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(1, test.edit)
			if hold := s.Release(&s.Pods[0]); hold.Kind != test.want {
				t.Errorf("hold is of the kind %d (%q), want %d", hold.Kind, hold.Why, test.want)
			}
		})
	}
}

// failing has a node that an administrator expects to fail.
func failing(i int) edit {
	return record(i, func(n *slurm.Node) { n.Flags, n.Reason = slurm.FlagFail, "XID 79" })
}

// drainedAt is from when on the node of the first pod is known to be closed.
func drainedAt(ago time.Duration) edit {
	return func(s *plan.Snapshot) { s.DrainedSince["gpu-0"] = epoch.Add(ago) }
}

func TestReleaseNamesBlockingJobs(t *testing.T) {
	for name, test := range map[string]struct {
		edit edit
		want string
	}{
		"one job":             {busy(0, time.Hour), "gpu-0 runs job 100 until 2026-03-01 13:00 UTC"},
		"one without a limit": {busy(0, 0), "gpu-0 runs job 100, and job 100 has no time limit"},
		"several jobs": {many(busy(0, time.Hour), func(s *plan.Snapshot) {
			s.Slurm.Loads["gpu-0"] = slurm.Load{Running: 2, Completing: 1, Job: 7, Until: epoch.Add(time.Hour)}
		}), "gpu-0 runs 3 jobs until 2026-03-01 13:00 UTC"},
		"jobs of a large queue that are not known yet": {func(s *plan.Snapshot) {
			s.Slurm.Loads["gpu-0"] = slurm.Load{Running: 1, Unlimited: true}
		}, "gpu-0 has something allocated"},
		"no known job": {record(0, func(n *slurm.Node) { n.AllocatedCPUs = 1 }), "gpu-0 has something allocated"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(1, drained(0, byUs("scale-in")), test.edit)
			if hold := s.Release(&s.Pods[0]); hold.Why != test.want {
				t.Errorf("it says %q, want %q", hold.Why, test.want)
			}
		})
	}
}

func TestDrainHistory(t *testing.T) {
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	open := &slurm.Node{Name: "gpu-0"}
	ours := &slurm.Node{Name: "gpu-0", Flags: slurm.FlagDrain, Reason: byUs("update"), ReasonAt: at(1)}
	theirs := &slurm.Node{Name: "gpu-0", Flags: slurm.FlagDrain, Reason: "broken fan", ReasonAt: at(1)}
	again := &slurm.Node{Name: "gpu-0", Flags: slurm.FlagDrain, Reason: "broken fan", ReasonAt: at(6)}
	look := func(second int, nodes ...*slurm.Node) func(*plan.DrainHistory) {
		return func(w *plan.DrainHistory) {
			w.Observe(&slurm.Snapshot{Nodes: nodes, NodesAsOf: at(second)}, []string{"gpu-0"})
		}
	}
	wrote := func(second int) func(*plan.DrainHistory) {
		return func(w *plan.DrainHistory) { w.Acknowledged([]string{"gpu-0"}, at(second)) }
	}
	type events = []func(*plan.DrainHistory)
	for name, test := range map[string]struct {
		events events
		want   int // second; -1 for unknown
	}{
		"knows nothing at first": {nil, -1},
		"knows nothing without a look": {
			events{func(w *plan.DrainHistory) { w.Observe(nil, []string{"gpu-0"}) }}, -1,
		},
		"does not note an open node":                          {events{look(2, open)}, -1},
		"notes a drain when it is first seen":                 {events{look(2, theirs), look(4, theirs)}, 2},
		"notes a drain of ours when it is acknowledged":       {events{wrote(1), look(2, ours), look(4, ours)}, 1},
		"is not misled by a look from before":                 {events{wrote(3), look(2, open)}, 3},
		"forgets a drain that is gone":                        {events{look(2, theirs), look(4, open)}, -1},
		"notes a drain anew that was away between two looks":  {events{look(2, theirs), look(8, again)}, 8},
		"notes a drain anew when it is not the one confirmed": {events{wrote(1), look(2, theirs)}, 2},
		"believes nothing from before a change of ours":       {events{look(2, ours), wrote(4)}, 4},
		"notes a node that is not there":                      {events{look(2), look(4)}, 2},
		"notes a node anew that was drained and then is gone": {events{look(2, theirs), look(4)}, 4},
		"notes a node anew that is gone after a drain":        {events{wrote(1), look(4)}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			var history plan.DrainHistory
			for _, event := range test.events {
				event(&history)
			}
			since, known := history.Since()["gpu-0"]
			if want := at(test.want); known != (test.want >= 0) || (known && !since.Equal(want)) {
				t.Errorf("known: %v, since %v, want second %d", known, since.Sub(epoch), test.want)
			}
		})
	}
}

// TestProtected has pods that may and may not be evicted.
func TestProtected(t *testing.T) {
	drained0 := drained(0, byUs("Kubernetes node m1 is cordoned"))
	for name, test := range map[string]struct {
		edit             edit
		protected, known bool
	}{
		"a pod whose node has a job":              {busy(0, time.Hour), true, true},
		"a pod whose node may get a job any time": {many(), true, true},
		"a pod whose node is drained with a job":  {many(drained0, busy(0, time.Hour)), true, true},
		"a pod whose node is drained and empty":   {drained0, false, true},
		"however old that is": {
			many(drained0, func(s *plan.Snapshot) { s.JustRead, s.Slurm.NodesAsOf = false, epoch.Add(-time.Hour) }),
			false, true,
		},
		"a suspended job that no record shows": {
			many(drained0, func(s *plan.Snapshot) { s.Slurm.Loads["gpu-0"] = slurm.Load{Other: 1} }), true, true,
		},
		"a pod whose node is down": {
			record(0, func(n *slurm.Node) { n.State = slurm.StateDown }), false, true,
		},
		"a pod while Slurm does not answer": {func(s *plan.Snapshot) { s.Answers = false }, true, false},
		"a pod before anything is known":    {func(s *plan.Snapshot) { s.Slurm = nil }, true, false},
		"a pod that may register any time": {
			many(newborn, forgotten(0), func(s *plan.Snapshot) { s.Slurm.ControllerSince = epoch }), true, true,
		},
		"a pod that never registered": {forgotten(0), false, true},
		"a pod that may be registered under another name": {
			many(forgotten(0), pod(0, func(p *plan.Pod) { p.Named = false })), true, true,
		},
		"a pod that has exited": {
			many(busy(0, 0), pod(0, func(p *plan.Pod) { p.Ended = true })), false, true,
		},
		"a pod whose jobs are waived": {
			many(busy(0, 0), set(func(set *plan.Set) { set.Waived = true })), false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(1, test.edit)
			if protected, known := s.Protected(&s.Pods[0]); protected != test.protected || known != test.known {
				t.Errorf("protected: %v, known: %v; want %v, %v", protected, known, test.protected, test.known)
			}
		})
	}
}

func TestDrainHistoryEvictsRemovedNodes(t *testing.T) {
	var history plan.DrainHistory
	for i := range 1000 {
		node := fmt.Sprintf("gpu-%d", i)
		history.Acknowledged([]string{node}, epoch)
		history.Retain([]string{node})
	}
	if kept := history.Since(); len(kept) != 1 || kept["gpu-999"].IsZero() {
		t.Errorf("%d nodes are remembered", len(kept))
	}
}
