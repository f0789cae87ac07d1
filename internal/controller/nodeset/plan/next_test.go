package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A row is a scene and the lines of the plan that are expected for it.
type row struct {
	scene *plan.Snapshot
	want  []string
}

func check(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			got := slices.Collect(strings.Lines(plan.Next(row.scene).String()))
			for i := range got {
				got[i] = strings.TrimSpace(got[i])
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("plan differs (-want +got):\n%s", diff)
			}
		})
	}
}

func replicas(n int) edit { return set(func(set *plan.Set) { set.Replicas = n }) }

// twoUnavailable lets two pods be unavailable.
var twoUnavailable = set(func(set *plan.Set) { set.Update.MaxUnavailable = 2 })

// TestScaleInOrder has one pod too many and tells which one it is.
func TestScaleInOrder(t *testing.T) {
	for name, test := range map[string]struct {
		edit edit
		want string
	}{
		"the highest ordinal":            {many(), "gpu-3"},
		"who is free before who is busy": {many(busy(3, time.Hour), busy(2, time.Hour)), "gpu-1"},
		"whose jobs end first": {
			many(busy(0, time.Hour), busy(1, time.Minute), busy(2, time.Hour), busy(3, time.Hour)), "gpu-1",
		},
		"whose jobs end at all": {
			many(busy(0, time.Hour), busy(1, 0), busy(2, 0), busy(3, 0)), "gpu-0",
		},
		"whose deletion costs least": {
			many(pod(3, func(p *plan.Pod) { p.DeletionCost = 1 }), pod(0, func(p *plan.Pod) { p.DeletionCost = -1 })),
			"gpu-0",
		},
		"a low cost before being free": {
			many(pod(0, func(p *plan.Pod) { p.DeletionCost = -1 }), busy(0, time.Hour)), "gpu-0",
		},
		"who is not ready before a low cost": {
			many(pod(0, func(p *plan.Pod) { p.DeletionCost = -1 }), unready(1)), "gpu-1",
		},
		"who is not registered before who is not ready": {many(unready(0), forgotten(1)), "gpu-1"},
		"who has ended before who is not registered": {
			many(forgotten(1), pod(0, func(p *plan.Pod) { p.Ended = true })), "gpu-0",
		},
		"who was chosen before, of those who are busy": {
			many(drained(2, byUs("scale-in")), busy(0, 0), busy(1, 0), busy(2, 0), busy(3, 0)), "gpu-2",
		},
		"who was chosen before, of those who are free": {drained(2, byUs("scale-in")), "gpu-2"},
		"who is free before who was chosen and is busy": {
			many(drained(2, byUs("scale-in")), busy(2, 0)), "gpu-3",
		},
		"nobody by what an administrator calls a scale-in": {drained(2, "scale-in"), "gpu-3"},
		"nobody by the reason of a drain that is not there": {
			record(2, func(n *slurm.Node) { n.Reason = byUs("scale-in") }), "gpu-3",
		},
		"the highest ordinal when nothing is known from Slurm": {
			func(s *plan.Snapshot) { s.Slurm, s.Answers = nil, false }, "gpu-3"},
	} {
		t.Run(name, func(t *testing.T) {
			next := plan.Next(scene(4, test.edit, replicas(3)))
			var leaving []string
			for _, wait := range next.Waits {
				leaving = append(leaving, wait.Pod.Name)
			}
			for _, action := range next.Actions {
				if action.Kind == plan.Delete {
					leaving = append(leaving, action.Pod.Name)
				}
			}
			if diff := cmp.Diff([]string{test.want}, leaving); diff != "" {
				t.Errorf("who goes differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScale(t *testing.T) {
	daemon := set(func(set *plan.Set) { set.DaemonSet = true })
	on := func(i int, kubernetesNode string) edit {
		return pod(i, func(p *plan.Pod) { p.Ordinal, p.KubernetesNode = -1, kubernetesNode })
	}
	kubernetesNode := func(name string, wanted bool) edit {
		return func(s *plan.Snapshot) {
			s.KubernetesNodes[name] = plan.KubernetesNode{
				Wanted: wanted, Stays: wanted, Selected: wanted, SlurmNode: "gpu-" + name,
			}
		}
	}
	tainted := func(s *plan.Snapshot) {
		s.KubernetesNodes["m1"] = plan.KubernetesNode{Stays: true, Selected: true, SlurmNode: "gpu-m1"}
	}
	check(t, map[string]row{
		"does nothing when all is well": {scene(3), nil},
		"creates the lowest ordinals that are free": {
			scene(2, replicas(4), pod(1, func(p *plan.Pod) { p.Ordinal = 2 })),
			[]string{"create ordinal 1: it is missing", "create ordinal 3: it is missing"},
		},
		"creates also when Slurm is away": {
			scene(0, replicas(1), func(s *plan.Snapshot) { s.Slurm, s.Answers = nil, false }),
			[]string{"create ordinal 0: it is missing"},
		},
		"waits for a pod that is going to make room": {
			scene(2, pod(1, func(p *plan.Pod) { p.Terminating = true })), nil,
		},
		"counts a pod that is going as gone": {
			scene(2, replicas(1), pod(0, func(p *plan.Pod) { p.Terminating = true })), nil,
		},
		"drains what is too many": {
			scene(2, replicas(1)),
			[]string{"drain node gpu-1: slurm-operator: scale-in", "keep gpu-1 (ScaleIn): gpu-1 is not drained yet"},
		},
		"deletes what is too many and drained": {
			scene(2, replicas(1), drained(1, byUs("scale-in"))), []string{"delete gpu-1: the NodeSet needs fewer pods"},
		},
		"lifts the drains of a scale-in that is no more": {
			scene(2, drained(1, byUs("scale-in"))), []string{"undrain node gpu-1: it may take jobs again"},
		},
		"deletes what has ended": {
			scene(1, pod(0, func(p *plan.Pod) { p.Ended, p.ReadySince = true, time.Time{} })),
			[]string{"delete gpu-0: it has exited"},
		},
		"creates nothing for a NodeSet that is going": {
			scene(0, replicas(2), set(func(set *plan.Set) { set.Deleting = true })), nil,
		},

		"has a pod on every Kubernetes node that wants one": {
			scene(1, daemon, on(0, "m1"), kubernetesNode("m3", true), kubernetesNode("m2", true)),
			[]string{"create on m2: the Kubernetes node has none", "create on m3: the Kubernetes node has none"},
		},
		"has no pod on a Kubernetes node that wants none": {
			scene(1, daemon, on(0, "m1"), kubernetesNode("m1", false)),
			[]string{"drain node gpu-0: slurm-operator: scale-in", "keep gpu-0 (ScaleIn): gpu-0 is not drained yet"},
		},
		"keeps the pod of a Node object that is gone": {
			scene(1, daemon, on(0, "m9")), []string{"create on m1: the Kubernetes node has none"},
		},
		"keeps a pod under a NoSchedule taint":    {scene(1, daemon, on(0, "m1"), tainted), nil},
		"creates no pod under a NoSchedule taint": {scene(0, daemon, tainted), nil},
		"makes no second pod while the first is going": {
			scene(1, daemon, on(0, "m1"), pod(0, func(p *plan.Pod) { p.Terminating = true })), nil,
		},
		"takes no notice of replicas on Kubernetes nodes": {scene(1, daemon, on(0, "m1"), replicas(0)), nil},
	})
}

func TestPVCIsDeletedOnlyWithItsOrdinal(t *testing.T) {
	for name, test := range map[string]struct {
		scene *plan.Snapshot
		want  bool
	}{
		"with a scale-in": {scene(2, replicas(1), drained(1, byUs("scale-in"))), true},
		"with a Kubernetes node that is no longer selected": {
			scene(1, daemonOn(plan.KubernetesNode{}), drained(0, byUs("scale-in"))), true,
		},
		"not with a NoExecute taint": {
			scene(1, daemonOn(plan.KubernetesNode{Selected: true}), drained(0, byUs("scale-in"))), false,
		},
		"not with an update": {scene(1, outdated(0), drained(0, byUs("update"))), false},
		"not with a pod that has ended": {
			scene(1, pod(0, func(p *plan.Pod) { p.Ended = true })), false,
		},
		"not with the NodeSet, which has a rule of its own": {
			scene(1, set(func(set *plan.Set) { set.Deleting = true }), drained(0, byUs("update"))), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, action := range plan.Next(test.scene).Actions {
				if action.Kind == plan.Delete && action.ScaledIn == test.want {
					return
				}
			}
			t.Errorf("no delete with claims: %v in\n%s", test.want, plan.Next(test.scene))
		})
	}
}

// daemonOn has the first pod in DaemonSet mode, on a Kubernetes node.
func daemonOn(kubernetesNode plan.KubernetesNode) edit {
	return func(s *plan.Snapshot) {
		s.Set.DaemonSet, s.Pods[0].Ordinal, s.KubernetesNodes["m1"] = true, -1, kubernetesNode
	}
}

// TestLostSlurmNodeRecords has ready pods that Slurm had and does not have any more.
func TestLostSlurmNodeRecords(t *testing.T) {
	lost := many(forgotten(0), pod(0, func(p *plan.Pod) { p.Registered = true }),
		func(s *plan.Snapshot) { s.DrainedSince["gpu-0"] = epoch.Add(-s.Set.Registration) })
	why := "delete gpu-0: Slurm has lost the record of its node, and slurmd does not register again by itself"
	check(t, map[string]row{
		"replaces a pod whose record is lost": {scene(2, lost), []string{why}},
		"waits for it to come back":           {scene(2, lost, drainedAt(-time.Minute)), nil},
		"waits while a job that Slurm knows runs": {scene(2, lost, func(s *plan.Snapshot) {
			s.Slurm.Loads["gpu-0"] = slurm.Load{Running: 1, Job: 7, Until: epoch.Add(time.Hour)}
		}), []string{"keep gpu-0 (RecordLost): gpu-0 runs job 7 until 2026-03-01 13:00 UTC"}},
		"waits for a slurmctld that has just started": {
			scene(2, lost, func(s *plan.Snapshot) { s.Slurm.ControllerSince = epoch.Add(-time.Minute) }),
			[]string{"keep gpu-0 (RecordLost): its slurmd may register at any moment"},
		},
		"waits while Slurm is away": {
			scene(2, lost, func(s *plan.Snapshot) { s.Answers = false }), nil,
		},
		"leaves a pod that never registered": {
			scene(2, lost, pod(0, func(p *plan.Pod) { p.Registered = false })), nil,
		},
		"leaves a pod that is not ready": {scene(2, lost, unready(0)), nil},
	})
}

func TestUpdate(t *testing.T) {
	cordoned := func(i int) edit { return pod(i, func(p *plan.Pod) { p.Cordoned = true }) }
	withheld := set(func(set *plan.Set) { set.Withheld = "no template" })
	failed := many(unready(0), pod(0, func(p *plan.Pod) { p.Failing = "CrashLoopBackOff" }))
	check(t, map[string]row{
		"creates nothing while it cannot": {
			scene(1, replicas(2), withheld), []string{"create nothing: no template"},
		},
		"replaces nothing while it can create nothing": {scene(1, outdated(0), withheld), nil},
		"replaces nothing that is not to be replaced": {
			scene(1, outdated(0), set(func(set *plan.Set) { set.Update.Replace = false })), nil,
		},
		"drains as many as may be unavailable, free ones first": {scene(4, outdated(0, 1, 2, 3), twoUnavailable,
			busy(0, time.Hour), busy(2, time.Hour)), []string{
			"drain node gpu-1: slurm-operator: update", "drain node gpu-3: slurm-operator: update",
			"keep gpu-1 (Update): gpu-1 is not drained yet", "keep gpu-3 (Update): gpu-3 is not drained yet",
		}},
		"drains none when another pod is missing": {
			scene(2, outdated(0, 1), replicas(3)), []string{"create ordinal 2: it is missing"},
		},
		"drains none when another pod is broken": {
			scene(2, outdated(0, 1), unready(1)),
			[]string{"drain node gpu-1: slurm-operator: update", "keep gpu-1 (Update): gpu-1 is not drained yet"},
		},
		"drains none when others have drained another": {scene(2, outdated(1), drained(0, "broken fan")), nil},
		"keeps those that it has chosen": {
			scene(2, outdated(0, 1), drained(1, byUs("update")), busy(0, time.Minute), busy(1, time.Hour)),
			[]string{"keep gpu-1 (Update): gpu-1 runs job 101 until 2026-03-01 13:00 UTC"},
		},
		"keeps them while others are unavailable": {
			scene(3, outdated(0, 1), drained(1, byUs("update")), busy(0, time.Minute), busy(1, time.Hour),
				pod(2, func(p *plan.Pod) { p.ReadySince, p.Started, p.Created = time.Time{}, epoch, epoch })),
			[]string{"keep gpu-1 (Update): gpu-1 runs job 101 until 2026-03-01 13:00 UTC"},
		},
		"lets a free one go before a busy one": {
			scene(2, outdated(0, 1), drained(1, byUs("update")), busy(1, time.Hour)),
			[]string{
				"drain node gpu-0: slurm-operator: update", "undrain node gpu-1: it may take jobs again",
				"keep gpu-0 (Update): gpu-0 is not drained yet",
			},
		},
		"drains no other before it can lift a drain": {scene(2, outdated(0, 1), drained(1, byUs("update")),
			busy(1, time.Hour), silent(0), silent(1)), []string{
			"keep gpu-1 (Update): gpu-1 runs job 101 until 2026-03-01 13:00 UTC",
		}},
		"drains no other for a busy one without a budget": {scene(3, outdated(0, 1, 2), drained(1, byUs("update")),
			drained(2, byUs("update")), busy(1, time.Hour), busy(2, time.Hour)), []string{
			"keep gpu-1 (Update): gpu-1 runs job 101 until 2026-03-01 13:00 UTC",
			"keep gpu-2 (Update): gpu-2 runs job 102 until 2026-03-01 13:00 UTC",
		}},
		"drains no more than that when all are shaky": {
			scene(3, outdated(0, 1, 2), unready(0), unready(1), unready(2)),
			[]string{"drain node gpu-0: slurm-operator: update", "keep gpu-0 (Update): gpu-0 is not drained yet"},
		},
		"lifts the drain of a scale-in that is no more": {
			scene(3, outdated(0, 1, 2), drained(0, byUs("update")), drained(1, byUs("scale-in")), busy(0, time.Hour),
				busy(1, time.Hour), busy(2, time.Hour)),
			[]string{
				"undrain node gpu-1: it may take jobs again",
				"keep gpu-0 (Update): gpu-0 runs job 100 until 2026-03-01 13:00 UTC",
			},
		},
		"replaces what an administrator expects to fail": {
			scene(2, outdated(0, 1), failing(0), drainedAt(-time.Minute)),
			[]string{"delete gpu-0: its revision is out of date"},
		},
		"replaces what is down within the budget": {
			scene(3, outdated(0, 1, 2), downSince(0), downSince(1)),
			[]string{"delete gpu-0: its revision is out of date"},
		},
		"replaces what an administrator has drained": {
			scene(2, outdated(0, 1), drained(0, "broken fan")), []string{"delete gpu-0: its revision is out of date"},
		},
		"keeps what a person has cordoned": {
			scene(2, outdated(0), cordoned(0), drained(0, byUs("pod is cordoned"))),
			[]string{"keep gpu-0 (Update): its annotation cordons it"},
		},
		"leaves a pod that is too many to the scale-in": {
			scene(2, outdated(0, 1), replicas(1), drained(1, byUs("update"))),
			[]string{
				"drain node gpu-0: slurm-operator: update", "drain node gpu-1: slurm-operator: scale-in",
				"delete gpu-1: the NodeSet needs fewer pods", "keep gpu-0 (Update): gpu-0 is not drained yet",
			},
		},
		"tries a new revision on one pod first": {
			scene(2, outdated(0, 1), twoUnavailable, drained(0, byUs("update")), drained(1, byUs("update"))),
			[]string{
				"delete gpu-0: its revision is out of date",
				"keep gpu-1 (Update): the new revision is tried on another pod first",
			},
		},
		"goes on with all when one has come up": {
			scene(3, outdated(0, 1), twoUnavailable, drained(0, byUs("update")), drained(1, byUs("update"))),
			[]string{"delete gpu-0: its revision is out of date", "delete gpu-1: its revision is out of date"},
		},
		"takes a pod that has come up drained for proof": {
			scene(2, outdated(1), twoUnavailable, drained(0, "broken fan"), drained(1, byUs("update"))),
			[]string{"delete gpu-1: its revision is out of date"},
		},
		"waits for the first while it may come up": {scene(2, outdated(1), twoUnavailable, newborn, forgotten(0),
			drainedSecond), []string{
			"keep gpu-1 (Update): the new revision is tried on another pod first",
		}},
		"stops and lifts its drains when the first does not come up": {scene(2, outdated(1), twoUnavailable, failed,
			drained(1, byUs("update"))), []string{
			"undrain node gpu-1: it may take jobs again",
			"update stopped: 1 of 1 pods of the new revision do not come up, such as gpu-0: CrashLoopBackOff",
		}},
		"stops when as many fail as may be unavailable, although one works": {scene(4, outdated(3), twoUnavailable,
			failed, unready(1)), []string{
			"update stopped: 2 of 3 pods of the new revision do not come up, such as gpu-0: CrashLoopBackOff",
		}},
		"goes on when fewer fail": {
			scene(4, outdated(3), twoUnavailable, failed),
			[]string{"drain node gpu-3: slurm-operator: update", "keep gpu-3 (Update): gpu-3 is not drained yet"},
		},
		"replaces a broken revision by a new one": {
			scene(2, outdated(0, 1), failed, drained(0, byUs("update"))),
			[]string{"delete gpu-0: its revision is out of date"},
		},
		"blames no revision for a slurmctld that has just started": {scene(2, outdated(1), drained(1, byUs("update")),
			busy(1, time.Hour),
			record(0, func(n *slurm.Node) { n.Flags |= slurm.FlagNotResponding }),
			func(s *plan.Snapshot) { s.Slurm.ControllerSince = epoch.Add(-time.Second) },
		), []string{"keep gpu-1 (Update): gpu-1 runs job 101 until 2026-03-01 13:00 UTC"}},
		"replaces only what no Kubernetes node has while Slurm is away": {
			scene(2, outdated(0, 1), newborn, func(s *plan.Snapshot) { s.Answers, s.Pods[0].Unplaced = false, true }),
			[]string{"delete gpu-0: its revision is out of date"},
		},
	})
}

// downSince has a node that Slurm has set down long before the last read.
func downSince(i int) edit {
	return many(record(i, func(n *slurm.Node) { n.State, n.Reason = slurm.StateDown, "Not responding" }),
		func(s *plan.Snapshot) { s.DrainedSince[s.Pods[i].SlurmNode] = epoch.Add(-time.Minute) })
}

// drainedSecond has the second node drained for the update, where the first is not known.
func drainedSecond(s *plan.Snapshot) {
	s.Slurm.Nodes[0].Flags, s.Slurm.Nodes[0].Reason = slurm.FlagDrain, byUs("update")
	s.DrainedSince["gpu-1"] = epoch.Add(-time.Minute)
}

func TestDrain(t *testing.T) {
	cordoned := pod(0, func(p *plan.Pod) { p.Cordoned = true })
	kubernetesNode := func(s *plan.Snapshot) {
		s.KubernetesNodes["m1"] = plan.KubernetesNode{Drain: "Kubernetes node m1 is cordoned"}
	}
	old := func(s *plan.Snapshot) { s.JustRead = false }
	check(t, map[string]row{
		"drains what a person has cordoned": {
			scene(1, cordoned), []string{"drain node gpu-0: slurm-operator: pod is cordoned"},
		},
		"drains what is on a cordoned Kubernetes node": {
			scene(1, kubernetesNode), []string{"drain node gpu-0: slurm-operator: Kubernetes node m1 is cordoned"},
		},
		"does so once": {scene(1, kubernetesNode, drained(0, byUs("Kubernetes node m1 is cordoned"))), nil},
		"says what the reason is when it is another": {
			scene(1, cordoned, drained(0, byUs("update"))),
			[]string{"drain node gpu-0: slurm-operator: pod is cordoned"},
		},
		"lifts a drain of ours without a cause": {
			scene(1, drained(0, byUs("pod is cordoned"))), []string{"undrain node gpu-0: it may take jobs again"},
		},
		"lifts none before the pod is ready": {scene(1, drained(0, byUs("update")), unready(0)), nil},
		"lifts none before Slurm has heard of it": {
			scene(1, drained(0, byUs("update")), record(0, func(n *slurm.Node) { n.Flags |= slurm.FlagNotResponding })),
			nil,
		},
		"never lifts somebody else's":      {scene(1, drained(0, "broken fan")), nil},
		"never lifts one without a reason": {scene(1, drained(0, "")), nil},
		"never overwrites somebody else's": {scene(1, cordoned, drained(0, "broken fan")), nil},
		"never overwrites somebody else's for a scale-in": {
			scene(1, replicas(0), drained(0, "broken fan"), busy(0, time.Hour)),
			[]string{"keep gpu-0 (ScaleIn): gpu-0 runs job 100 until 2026-03-01 13:00 UTC"},
		},
		"never overwrites FAIL": {scene(1, cordoned, failing(0)), nil},
		"never lifts FAIL": {
			scene(1, failing(0),
				record(0, func(n *slurm.Node) { n.Flags, n.Reason = slurm.FlagFail|slurm.FlagDrain, byUs("update") })),
			nil,
		},
		"never overwrites DOWN": {
			scene(1, cordoned, record(0, func(n *slurm.Node) { n.State, n.Reason = slurm.StateDown, "bad DIMM" })), nil,
		},
		"clears a reason of ours without a drain": {
			scene(1, record(0, func(n *slurm.Node) { n.Reason = byUs("update") })),
			[]string{"clear reason of node gpu-0: its drain was lifted"},
		},
		"takes what is left of our reason for another's": {scene(1, drained(0, slurm.NoReason)), nil},
		"drains nothing while Slurm is away": {
			scene(1, cordoned, func(s *plan.Snapshot) { s.Answers = false }), nil,
		},
		"drains nothing after a look that is old": {scene(1, cordoned, old), nil},
		"lifts nothing after a look that is old":  {scene(1, drained(0, byUs("update")), old), nil},
		"leaves the drain of a pod that is going": {
			scene(1, drained(0, byUs("scale-in")), pod(0, func(p *plan.Pod) { p.Terminating = true })), nil,
		},
		"drains nothing that Slurm does not know": {scene(1, cordoned, forgotten(0)), nil},
		"says that all goes when the NodeSet is deleted": {
			scene(1, set(func(set *plan.Set) { set.Deleting = true })),
			[]string{
				"drain node gpu-0: slurm-operator: NodeSet is being deleted",
				"keep gpu-0 (Deletion): gpu-0 is not drained yet",
			},
		},
		"deletes all at once when jobs are waived": {
			scene(1, busy(0, 0), set(func(set *plan.Set) { set.Deleting, set.Waived = true, true })),
			[]string{
				"drain node gpu-0: slurm-operator: NodeSet is being deleted",
				"delete gpu-0: its NodeSet is being deleted",
			},
		},
	})
}

func TestPrune(t *testing.T) {
	prune := set(func(set *plan.Set) { set.Prune = plan.PruneAll })
	// gone has a pod less than there are records.
	gone := many(prune, func(s *plan.Snapshot) { s.Pods, s.Set.Replicas = s.Pods[:1], 1 })
	down := record(1, func(n *slurm.Node) { n.State = slurm.StateDown })
	scaledIn := func(set *plan.Set) { set.Prune = plan.PruneScaledIn }
	pruned := []string{"prune node gpu-1: it has no pod any more"}
	check(t, map[string]row{
		"removes a record without a pod that is down": {scene(2, gone, down), pruned},
		"removes one that we have drained":            {scene(2, gone, drained(1, byUs("scale-in"))), pruned},
		"removes none when that is not asked for": {
			scene(2, gone, down, set(func(set *plan.Set) { set.Prune = plan.PruneNever })), nil,
		},
		"removes none that still responds": {scene(2, gone), nil},
		"removes by default what we have drained to remove it": {
			scene(2, gone, set(scaledIn), drained(1, byUs("scale-in"))), pruned,
		},
		"removes by default what was deleted": {
			scene(2, gone, set(scaledIn), drained(1, byUs("NodeSet is being deleted"))), pruned,
		},
		"removes by default nothing that is only down": {scene(2, gone, set(scaledIn), down), nil},
		"removes by default nothing drained for an update": {
			scene(2, gone, set(scaledIn), drained(1, byUs("update"))), nil,
		},
		"removes none that is reserved": {
			scene(2, gone, drained(1, byUs("scale-in")),
				record(1, func(n *slurm.Node) { n.Reservation = "maintenance" })),
			nil,
		},
		"removes none in maintenance": {
			scene(2, gone, drained(1, byUs("scale-in")),
				record(1, func(n *slurm.Node) { n.Flags |= slurm.FlagMaintenance })),
			nil,
		},
		"removes none that an administrator expects to fail": {scene(2, gone, failing(1)), nil},
		"removes none with jobs": {
			scene(2, down, func(s *plan.Snapshot) { s.Slurm.Loads["gpu-1"] = slurm.Load{Running: 1} }, gone), nil,
		},
		"removes none that somebody else has drained": {scene(2, gone, down, drained(1, "broken fan")), nil},
		"removes none of another NodeSet": {scene(2, gone, down, record(1, func(n *slurm.Node) {
			n.Comment = slurm.Owner{Namespace: "default", PodName: "set-1", NodeSetUID: "set-2"}.Comment()
		})), nil},
		"removes none that a person has commented on": {
			scene(2, gone, down, record(1, func(n *slurm.Node) { n.Comment = "set-1" })), nil,
		},
		"removes none while a pod is missing": {
			scene(2, gone, down, replicas(2)), []string{"create ordinal 1: it is missing"},
		},
		"removes none after a look that is old": {
			scene(2, gone, down, func(s *plan.Snapshot) { s.JustRead = false }), nil,
		},
		"removes none of a pod that is going": {
			scene(2, prune, replicas(1), down, pod(1, func(p *plan.Pod) { p.Terminating = true })), nil,
		},
		"removes none while another pod is going": {scene(3, prune,
			record(1, func(n *slurm.Node) { n.State = slurm.StateDown }), func(s *plan.Snapshot) {
				s.Pods, s.Set.Replicas = []plan.Pod{s.Pods[0], s.Pods[2]}, 1
				s.Pods[1].Terminating = true
			}), nil},
		"removes none while Slurm is away": {scene(2, gone, down, func(s *plan.Snapshot) { s.Answers = false }), nil},
	})
}

// TestPlanRequiresFreshSlurmState has plans that need a newer look at Slurm, and plans that do not.
func TestPlanRequiresFreshSlurmState(t *testing.T) {
	old := func(s *plan.Snapshot) {
		s.JustRead = false
	}
	for name, test := range map[string]struct {
		scene *plan.Snapshot
		want  bool
	}{
		"none at rest, however old the look": {scene(2, old), false},
		"one before a drain":                 {scene(2, old, replicas(1)), true},
		"one before a drain is lifted":       {scene(1, old, drained(0, byUs("update"))), true},
		"one before a delete":                {scene(1, old, replicas(0), drained(0, byUs("scale-in"))), true},
		"one before a record is removed": {
			scene(1, old, set(func(set *plan.Set) { set.Prune = plan.PruneAll }),
				func(s *plan.Snapshot) { s.Pods, s.Set.Replicas = nil, 0 }),
			true,
		},
		"none while jobs are in the way": {
			scene(1, replicas(0), drained(0, byUs("scale-in")), busy(0, time.Hour)), false,
		},
		"none while Slurm is away": {
			scene(1, old, replicas(0), func(s *plan.Snapshot) { s.Answers = false }), false,
		},
		"none for a drain of somebody else's": {scene(1, old, drained(0, "broken fan")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if next := plan.Next(test.scene); next.NeedsRefresh != test.want {
				t.Errorf("proof needed: %v, want %v, in\n%s", next.NeedsRefresh, test.want, next)
			}
		})
	}
}

// TestRequeueTime has plans that something has to be done about later, although nothing happens.
func TestRequeueTime(t *testing.T) {
	for name, test := range map[string]struct {
		scene *plan.Snapshot
		want  time.Duration // zero for never
	}{
		"never at rest": {scene(2), 0},
		"when a pod is ready for long enough": {
			scene(1, set(func(set *plan.Set) { set.MinReady = 2 * time.Hour })), time.Hour,
		},
		"when a slurmd is late": {
			scene(1, replicas(0), forgotten(0), pod(0, func(p *plan.Pod) { p.Started = epoch.Add(-time.Minute) })),
			time.Minute,
		},
		"when an ended pod may be replaced": {
			scene(1, pod(0,
				func(p *plan.Pod) { p.Ended, p.ReadySince, p.Created = true, time.Time{}, epoch.Add(-time.Second) })),
			9 * time.Second,
		},
		"when a new revision has had its time": {scene(2, outdated(1), newborn), 119 * time.Second},
		"never for jobs, whose end is seen": {
			scene(1, replicas(0), drained(0, byUs("scale-in")), busy(0, time.Hour)), 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			next := plan.Next(test.scene)
			if got := next.Wake; (test.want == 0) != got.IsZero() ||
				(test.want > 0 && !got.Equal(epoch.Add(test.want))) {
				t.Errorf("wakes after %v, want %v, in\n%s", got.Sub(epoch), test.want, next)
			}
		})
	}
}
