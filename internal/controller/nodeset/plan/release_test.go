package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// TestRelease covers each check of the deletion rule, with both outcomes.
func TestRelease(t *testing.T) {
	drained0 := drained(0, byUs("scale-in"))
	down0 := record(0, func(n *slurm.Node) { n.State, n.Reason = slurm.StateDown, "Not responding" })
	unnamed := pod(0, func(p *plan.Pod) { p.Named = false })
	registered := pod(0, func(p *plan.Pod) { p.Registered = true })
	readAgo := func(jobs, nodes time.Duration) edit {
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
		"releases a Slurm node that is drained and empty": {drained0, plan.NotHeld},
		"releases a Slurm node that others have drained":  {drained(0, "broken fan"), plan.NotHeld},
		"releases a Slurm node that is drained and down": {
			many(drained0, record(0, func(n *slurm.Node) { n.State = slurm.StateDown })), plan.NotHeld,
		},
		"holds a Slurm node that is not drained": {many(), plan.Undrained},
		"releases a Slurm node that is down": {
			many(down0, drainedAt(-time.Minute)), plan.NotHeld,
		},
		"holds a Slurm node that is down and may have returned since it was read": {
			many(down0, drainedAt(-time.Minute), readAgo(0, plan.MaxAbsenceAge)), plan.Unproven,
		},
		"releases a Slurm node that is down and was read alone": {
			many(down0, drainedAt(-time.Minute), readAgo(0, plan.MaxAbsenceAge), func(s *plan.Snapshot) {
				s.Slurm, _ = s.Slurm.WithNodes([]slurm.Node{*s.Slurm.Nodes[0]}, epoch.Add(-time.Second))
			}), plan.NotHeld,
		},
		"releases a Slurm node that is drained and down, with an older list": {
			many(drained0, down0, readAgo(plan.MaxAbsenceAge, plan.MaxAbsenceAge)), plan.NotHeld,
		},
		"releases a Slurm node that is failing and down, with an older list": {
			many(failing(0), record(0, func(n *slurm.Node) { n.State = slurm.StateDown }), drainedAt(-time.Minute),
				readAgo(plan.MaxAbsenceAge, plan.MaxAbsenceAge)), plan.NotHeld,
		},
		"holds a Slurm node that was first seen down in the last snapshot": {
			many(down0, drainedAt(-time.Second)), plan.Unproven,
		},
		"releases a failing Slurm node": {
			many(failing(0), drainedAt(-time.Minute)), plan.NotHeld,
		},
		"holds a failing Slurm node with a running job": {
			many(failing(0), drainedAt(-time.Minute), busy(0, time.Hour)), plan.Jobs,
		},
		"holds a drained Slurm node with a running job": {
			many(drained0, busy(0, time.Hour)), plan.Jobs,
		},
		"holds a drained Slurm node whose job is only in the list of jobs": {
			many(drained0, func(s *plan.Snapshot) { s.Slurm.Loads["gpu-0"] = slurm.Load{Other: 1} }), plan.Jobs,
		},
		"holds a drained Slurm node with a completing job": {
			many(drained0, func(s *plan.Snapshot) { s.Slurm.Loads["gpu-0"] = slurm.Load{Completing: 1} }), plan.Jobs,
		},
		"holds a drained Slurm node that is COMPLETING without a known job": {
			many(drained0, record(0, func(n *slurm.Node) { n.Flags |= slurm.FlagCompleting })), plan.Jobs,
		},
		"holds a drained Slurm node with allocated memory": {
			many(drained0, record(0, func(n *slurm.Node) { n.AllocatedMemory = 1 })), plan.Jobs,
		},
		"holds a drained Slurm node in an unknown state": {
			many(drained0, record(0, func(n *slurm.Node) { n.State = slurm.StateUnknown })), plan.Jobs,
		},

		"holds if Slurm does not answer": {
			many(drained0, func(s *plan.Snapshot) { s.Answers = false }), plan.Unreachable,
		},
		"holds without a snapshot of Slurm": {func(s *plan.Snapshot) { s.Slurm = nil }, plan.Unreachable},
		"holds if the list of Slurm nodes is too old": {
			many(drained0, readAgo(0, plan.MaxSnapshotAge)), plan.Unproven,
		},
		"holds if the list of jobs is too old": {
			many(drained0, readAgo(plan.MaxSnapshotAge, 0)), plan.Unproven,
		},
		"releases if both lists are just young enough": {
			many(drained0, readAgo(plan.MaxSnapshotAge-1, plan.MaxSnapshotAge-1)), plan.NotHeld,
		},
		"holds if the list of jobs is older than the drain": {
			many(drained0, readAgo(3*time.Second, time.Second), drainedAt(-2*time.Second)), plan.Unproven,
		},
		"holds if the drain was first seen in the last snapshot": {many(drained0, drainedAt(-time.Second)), plan.Unproven},
		"releases if both lists are newer than the drain": {
			many(drained0, readAgo(2*time.Second, time.Second), drainedAt(-3*time.Second)), plan.NotHeld,
		},
		"holds if Slurm was not read for this plan": {
			many(drained0, func(s *plan.Snapshot) { s.JustRead = false }), plan.Unproven,
		},
		"reports a stale snapshot rather than a job in it": {
			many(drained0, busy(0, time.Hour), readAgo(time.Hour, time.Hour)), plan.Unproven,
		},
		"holds if the drain is not in the history": {
			many(drained0, func(s *plan.Snapshot) { s.DrainedSince = nil }), plan.Unproven,
		},
		"holds if the absence is not in the history": {
			many(withoutRecord(0), func(s *plan.Snapshot) { s.DrainedSince = nil }), plan.Unproven,
		},

		"releases if jobs are waived": {
			many(busy(0, 0), set(func(set *plan.Set) { set.Waived = true })), plan.NotHeld,
		},
		"releases a pod that has exited, whatever Slurm reports": {
			many(busy(0, 0), pod(0, func(p *plan.Pod) { p.Exited = true })), plan.NotHeld,
		},
		"holds a pod that exited right after its creation": {
			pod(0, func(p *plan.Pod) { p.Exited, p.Created = true, epoch.Add(-time.Second) }), plan.ExitedEarly,
		},
		"releases an unscheduled pod without Slurm": {
			many(notStarted, pod(0, func(p *plan.Pod) { p.Unscheduled = true }), func(s *plan.Snapshot) { s.Slurm = nil }),
			plan.NotHeld,
		},
		"holds a pod that may have started, without Slurm": {
			many(notStarted, func(s *plan.Snapshot) { s.Answers = false }), plan.Unreachable,
		},
		"holds a pod with a job before its start is reported":      {many(notStarted, busy(0, time.Hour)), plan.Jobs},
		"holds a pod that has not started with an open Slurm node": {notStarted, plan.Undrained},

		"releases a pod that has not started without a record": {many(notStarted, withoutRecord(0)), plan.NotHeld},
		"holds a pod whose slurmd may have started and registered since the list of Slurm nodes": {
			many(notStarted, withoutRecord(0), readAgo(0, plan.MaxAbsenceAge)), plan.Unproven,
		},
		"holds a pod whose slurmd may have restarted and registered since the list of Slurm nodes": {
			many(unready(0), pod(0, func(p *plan.Pod) { p.Started = time.Time{} }), withoutRecord(0),
				readAgo(0, plan.MaxAbsenceAge)), plan.Unproven,
		},
		"releases a pod that did not register in time, with an older list of Slurm nodes": {
			many(withoutRecord(0), readAgo(plan.MaxAbsenceAge, plan.MaxAbsenceAge)), plan.NotHeld,
		},
		"holds a pod without a record if slurmctld has just started": {
			many(withoutRecord(0), slurmctldSince(time.Minute)), plan.Registering,
		},
		"holds a pod without a record if the start of slurmctld is unknown": {
			many(withoutRecord(0), func(s *plan.Snapshot) { s.Slurm.ControllerSince = time.Time{} }), plan.Unproven,
		},
		"holds a pod that has just started and may register": {
			many(withoutRecord(0), pod(0, func(p *plan.Pod) { p.Started = epoch.Add(-time.Minute) })), plan.Registering,
		},
		"releases a pod that did not register in time":          {many(withoutRecord(0)), plan.NotHeld},
		"holds a pod that may be registered under another name": {many(withoutRecord(0), unnamed), plan.Unidentified},
		"releases a pod started without its name that registered under it": {
			many(withoutRecord(0), unnamed, registered), plan.NotHeld,
		},
		"holds a pod without its name whose slurmd may run unreported": {
			many(withoutRecord(0), unnamed, notStarted), plan.Unidentified,
		},
		"releases an unscheduled pod without its name": {
			many(withoutRecord(0), unnamed, notStarted, pod(0, func(p *plan.Pod) { p.Unscheduled = true })), plan.NotHeld,
		},
		"holds a pod without its name whose record is that of an earlier pod": {
			many(drained0, unnamed, registered, slurmdSince(-3*time.Hour)), plan.Unidentified,
		},
		"holds a pod without its name whose record has never had a slurmd": {
			many(drained0, unnamed, registered), plan.Unidentified,
		},
		"holds a pod without its name whose record names another pod": {
			many(drained0, unnamed, slurmdSince(-time.Hour), record(0, func(n *slurm.Node) {
				n.Instance = slurm.Owner{Namespace: "default", PodName: "gpu-1"}.String()
			})), plan.Unidentified,
		},
		"releases a pod without its name that brought the record": {
			many(drained0, unnamed, slurmdSince(-time.Hour), record(0, func(n *slurm.Node) {
				n.Instance = slurm.Owner{Namespace: "default", PodName: "gpu-0"}.String()
			})), plan.NotHeld,
		},
		"releases a pod without its name whose record is as new": {
			many(drained0, unnamed, slurmdSince(-time.Hour)), plan.NotHeld,
		},
		"holds a pod without its name that has restarted since it registered": {
			many(drained0, unnamed, slurmdSince(-time.Hour),
				pod(0, func(p *plan.Pod) { p.Started = epoch.Add(-time.Minute) })), plan.Unidentified,
		},
		"holds a pod without a record that has a job": {
			many(withoutRecord(0), func(s *plan.Snapshot) { s.Slurm.Loads["gpu-0"] = slurm.Load{Running: 1} }), plan.Jobs,
		},
		"holds a pod whose record is first missing in the last snapshot": {
			many(withoutRecord(0), drainedAt(-time.Second)), plan.Unproven,
		},
		"holds a pod without a record while jobs are being cleaned up on unknown Slurm nodes": {
			many(withoutRecord(0), unlocated), plan.Unlocated,
		},
		"holds a pod without a record for a known job": {
			many(withoutRecord(0), unlocated, func(s *plan.Snapshot) { s.Slurm.Loads["gpu-0"] = slurm.Load{Running: 1} }),
			plan.Jobs,
		},
		"releases a drained Slurm node while jobs are being cleaned up on unknown ones": {
			many(drained0, unlocated), plan.NotHeld,
		},
		"holds a pod without a record if the snapshot is too old": {
			many(withoutRecord(0), readAgo(time.Minute, time.Minute)), plan.Unproven,
		},
		"holds a pod that has not started if slurmctld may have lost its record": {
			many(notStarted, withoutRecord(0), slurmctldSince(time.Minute)), plan.Registering,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(1, test.edit)
			if hold := s.Release(&s.Pods[0]); hold.Kind != test.want {
				t.Errorf("the kind of the hold is %d (%q), want %d", hold.Kind, hold.Why, test.want)
			}
			checkAlarms(t, s)
		})
	}
}

// slurmdSince sets when the slurmd of the first record started.
func slurmdSince(ago time.Duration) edit {
	return record(0, func(n *slurm.Node) { n.SlurmdStartedAt = epoch.Add(ago) })
}

// TestUnidentifiedPodsAreKept has pods whose slurmd may have registered under another name, and run jobs there.
func TestUnidentifiedPodsAreKept(t *testing.T) {
	for name, edit := range map[string]edit{
		"before its start is reported": many(notStarted, withoutRecord(0), pod(0, func(p *plan.Pod) { p.Named = false })),
		"with the record of an earlier pod, which is down": many(downSince(0),
			pod(0, func(p *plan.Pod) { p.Named, p.Registered = false, true })),
		"with the record of an earlier pod, which is drained": many(drained(0, byUs("scale-in")),
			pod(0, func(p *plan.Pod) { p.Named = false })),
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(1, replicas(0), edit)
			next := plan.Next(s)
			if len(next.Of(plan.Delete)) > 0 || next.Protections[0] != plan.Protected ||
				next.Waits[0].Hold.Kind != plan.Unidentified {
				t.Errorf("protection %d, in\n%s", next.Protections[0], next)
			}
			checkAlarms(t, s)
		})
	}
}

// unlocated has too many jobs to list, one of which is being cleaned up on an unknown Slurm node.
func unlocated(s *plan.Snapshot) { s.Slurm.Partial, s.Slurm.Unplaced, s.Slurm.Running = true, 1, 12000 }

// TestReleaseReadsRarelyForUnlocatedJobs has a scale-in that waits for jobs on unknown Slurm nodes: another read of
// Slurm rarely helps, and takes seconds in a large cluster.
func TestReleaseReadsRarelyForUnlocatedJobs(t *testing.T) {
	for name, test := range map[string]struct {
		age  time.Duration // of the list of Slurm nodes
		want time.Duration // until the next plan; 0 for a read of Slurm
	}{
		"after a read":       {time.Second, 59 * time.Second},
		"a while after it":   {20 * time.Second, 40 * time.Second},
		"a minute after it":  {time.Minute, 0},
		"long after a read":  {time.Hour, 0},
		"at the time of one": {0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(2, withoutRecord(1), replicas(1), unlocated, func(s *plan.Snapshot) {
				s.Slurm.NodesAsOf, s.Slurm.JobsAsOf = epoch.Add(-test.age), epoch.Add(-test.age)
				s.DrainedSince["gpu-1"] = epoch.Add(-2 * time.Hour)
			})
			next := plan.Next(s)
			if next.NeedsRefresh != (test.want == 0) || len(next.Deleted()) > 0 {
				t.Errorf("it asks for a read: %t, in\n%s", next.NeedsRefresh, next)
			}
			// The protection of the pod is checked in between.
			if wake := next.Wake.Sub(epoch); test.want > 0 && (wake > test.want || wake <= 0) {
				t.Errorf("it wakes after %s, want %s", wake, test.want)
			}
			if why := next.Waits[0].Hold.Why; !strings.Contains(why, "too many jobs") {
				t.Errorf("the hold is %q", why)
			}
			checkAlarms(t, s)
		})
	}
}

// failing sets FAIL on a Slurm node.
func failing(i int) edit {
	return record(i, func(n *slurm.Node) { n.Flags, n.Reason = slurm.FlagFail, "XID 79" })
}

// drainedAt sets since when the Slurm node of the first pod is known to be closed.
func drainedAt(ago time.Duration) edit {
	return func(s *plan.Snapshot) { s.DrainedSince["gpu-0"] = epoch.Add(ago) }
}

func TestReleaseNamesBlockingJobs(t *testing.T) {
	for name, test := range map[string]struct {
		edit edit
		want string
	}{
		"one job":                      {busy(0, time.Hour), "gpu-0 runs job 100 until 2026-03-01 13:00 UTC"},
		"one job without a time limit": {busy(0, 0), "gpu-0 runs job 100, and job 100 has no time limit"},
		"several jobs": {many(busy(0, time.Hour), func(s *plan.Snapshot) {
			s.Slurm.Loads["gpu-0"] = slurm.Load{Running: 2, Completing: 1, Job: 7, Until: epoch.Add(time.Hour)}
		}), "gpu-0 runs 3 jobs until 2026-03-01 13:00 UTC"},
		"jobs of a large queue that are not identified yet": {func(s *plan.Snapshot) {
			s.Slurm.Loads["gpu-0"] = slurm.Load{Running: 1, Unlimited: true}
		}, "gpu-0 has allocated resources"},
		"no known job": {record(0, func(n *slurm.Node) { n.AllocatedCPUs = 1 }), "gpu-0 has allocated resources"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(1, drained(0, byUs("scale-in")), test.edit)
			if hold := s.Release(&s.Pods[0]); hold.Why != test.want {
				t.Errorf("the hold is %q, want %q", hold.Why, test.want)
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
	read := func(second int, nodes ...*slurm.Node) func(*plan.DrainHistory) {
		return func(h *plan.DrainHistory) {
			h.Observe(&slurm.Snapshot{Nodes: nodes, NodesAsOf: at(second)}, []string{"gpu-0"})
		}
	}
	wrote := func(second int) func(*plan.DrainHistory) {
		return func(h *plan.DrainHistory) { h.Acknowledged([]string{"gpu-0"}, at(second)) }
	}
	alone := func(list, second int, node *slurm.Node) func(*plan.DrainHistory) {
		return func(h *plan.DrainHistory) {
			snapshot := &slurm.Snapshot{Nodes: []*slurm.Node{ours}, NodesAsOf: at(list)}
			later, _ := snapshot.WithNodes([]slurm.Node{*node}, at(second))
			h.Observe(later, []string{"gpu-0"})
		}
	}
	type events = []func(*plan.DrainHistory)
	for name, test := range map[string]struct {
		events events
		want   int // second; -1 for unknown
	}{
		"is empty at first": {nil, -1},
		"is empty without a snapshot": {
			events{func(h *plan.DrainHistory) { h.Observe(nil, []string{"gpu-0"}) }}, -1,
		},
		"omits an open Slurm node":                                      {events{read(2, open)}, -1},
		"has a drain since it is first seen":                            {events{read(2, theirs), read(4, theirs)}, 2},
		"has a drain of the operator since it is acknowledged":          {events{wrote(1), read(2, ours), read(4, ours)}, 1},
		"ignores a snapshot from before the acknowledgement":            {events{wrote(3), read(2, open)}, 3},
		"drops a drain that is lifted":                                  {events{read(2, theirs), read(4, open)}, -1},
		"drops a drain that is lifted, if its node was read alone":      {events{wrote(3), alone(2, 4, open)}, -1},
		"has a drain since its node was read alone":                     {events{alone(1, 4, theirs), read(6, theirs)}, 4},
		"updates a drain that was lifted and set between two snapshots": {events{read(2, theirs), read(8, again)}, 8},
		"updates a drain that is not the acknowledged one":              {events{wrote(1), read(2, theirs)}, 2},
		"discards snapshots from before a change by the operator":       {events{read(2, ours), wrote(4)}, 4},
		"has a missing Slurm node since it is first missed":             {events{read(2), read(4)}, 2},
		"updates a drained Slurm node whose record is then missing":     {events{read(2, theirs), read(4)}, 4},
		"updates an acknowledged drain whose record is then missing":    {events{wrote(1), read(4)}, 4},
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

func TestProtected(t *testing.T) {
	drained0 := many(cordoned, drained(0, byUs("Kubernetes node m1 is cordoned")))
	for name, test := range map[string]struct {
		edit edit
		want plan.Protection
	}{
		"a pod whose Slurm node has a job":             {busy(0, time.Hour), plan.Protected},
		"a pod whose Slurm node is open":               {many(), plan.Protected},
		"a pod whose Slurm node is drained with a job": {many(drained0, busy(0, time.Hour)), plan.Protected},
		"a pod whose Slurm node is drained and empty":  {drained0, plan.Evictable},
		"a pod whose drain is about to be lifted": {
			drained(0, byUs("Kubernetes node m1 is cordoned")), plan.Protected,
		},
		"a pod whose Slurm node is drained and empty in an old snapshot": {
			many(drained0, pod(0, func(p *plan.Pod) { p.Created = epoch.Add(-2 * time.Hour) }),
				func(s *plan.Snapshot) { s.JustRead, s.Slurm.NodesAsOf = false, epoch.Add(-time.Hour) }),
			plan.Evictable,
		},
		"a pod that was created after the record of its Slurm node was read": {
			many(drained0, pod(0, func(p *plan.Pod) { p.Created = epoch.Add(-time.Minute) }),
				func(s *plan.Snapshot) { s.JustRead, s.Slurm.NodesAsOf = false, epoch.Add(-2*time.Minute) }),
			plan.Protected,
		},
		"a pod that was created in the second in which the record of its Slurm node was read": {
			many(drained0, pod(0, func(p *plan.Pod) { p.Created = epoch.Add(-time.Minute) }),
				func(s *plan.Snapshot) {
					s.JustRead, s.Slurm.NodesAsOf = false, epoch.Add(-time.Minute+300*time.Millisecond)
				}),
			plan.Protected,
		},
		"a pod with a suspended job that no record shows": {
			many(drained0, func(s *plan.Snapshot) { s.Slurm.Loads["gpu-0"] = slurm.Load{Other: 1} }), plan.Protected,
		},
		"a pod whose Slurm node is down": {
			record(0, func(n *slurm.Node) { n.State = slurm.StateDown }), plan.Evictable,
		},
		"a pod while Slurm does not answer": {func(s *plan.Snapshot) { s.Answers = false }, plan.UnknownProtection},
		"a pod without a snapshot of Slurm": {func(s *plan.Snapshot) { s.Slurm = nil }, plan.UnknownProtection},
		"a pod that may register at any time": {
			many(notStarted, withoutRecord(0), func(s *plan.Snapshot) { s.Slurm.ControllerSince = epoch }), plan.Protected,
		},
		"a pod that has not started, long after slurmctld": {many(notStarted, withoutRecord(0)), plan.Protected},
		"a pod that never registered":                      {withoutRecord(0), plan.Evictable},
		"a pod that may be registered under another name": {
			many(withoutRecord(0), pod(0, func(p *plan.Pod) { p.Named = false })), plan.Protected,
		},
		"a pod that has exited": {
			many(busy(0, 0), pod(0, func(p *plan.Pod) { p.Exited = true })), plan.Evictable,
		},
		"a pod whose jobs are waived": {
			many(busy(0, 0), set(func(set *plan.Set) { set.Waived = true })), plan.Evictable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(1, test.edit)
			if got := plan.Next(s).Protections[0]; got != test.want {
				t.Errorf("the protection is %d, want %d", got, test.want)
			}
			checkAlarms(t, s)
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
		t.Errorf("%d Slurm nodes are kept", len(kept))
	}
}
