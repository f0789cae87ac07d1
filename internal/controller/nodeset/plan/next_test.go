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

// A row is a scene and the expected lines of its plan.
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
			checkAlarms(t, row.scene)
		})
	}
}

func replicas(n int) edit { return set(func(set *plan.Set) { set.Replicas = n }) }

// twoUnavailable sets maxUnavailable to two.
var twoUnavailable = set(func(set *plan.Set) { set.Update.MaxUnavailable = 2 })

// correctIt is the end of the message about a revision that fails.
const correctIt = "; correct the spec, or restore the previous one"

// TestScaleInOrder has one pod in excess, and checks which one is deleted.
func TestScaleInOrder(t *testing.T) {
	for name, test := range map[string]struct {
		edit edit
		want string
	}{
		"the highest ordinal":           {many(), "gpu-3"},
		"an idle pod before a busy one": {many(busy(3, time.Hour), busy(2, time.Hour)), "gpu-1"},
		"the pod whose jobs end first": {
			many(busy(0, time.Hour), busy(1, time.Minute), busy(2, time.Hour), busy(3, time.Hour)), "gpu-1",
		},
		"a job with a time limit before one without": {
			many(busy(0, time.Hour), busy(1, 0), busy(2, 0), busy(3, 0)), "gpu-0",
		},
		"the lowest deletion cost": {
			many(pod(3, func(p *plan.Pod) { p.DeletionCost = 1 }), pod(0, func(p *plan.Pod) { p.DeletionCost = -1 })),
			"gpu-0",
		},
		"a low deletion cost before an idle pod": {
			many(pod(0, func(p *plan.Pod) { p.DeletionCost = -1 }), busy(0, time.Hour)), "gpu-0",
		},
		"an unready pod before a low deletion cost": {
			many(pod(0, func(p *plan.Pod) { p.DeletionCost = -1 }), unready(1)), "gpu-1",
		},
		"an unregistered pod before an unready one": {many(unready(0), withoutRecord(1)), "gpu-1"},
		"an exited pod before an unregistered one": {
			many(withoutRecord(1), pod(0, func(p *plan.Pod) { p.Exited = true })), "gpu-0",
		},
		"the pod chosen before, among busy ones": {
			many(drained(2, byUs("scale-in")), busy(0, 0), busy(1, 0), busy(2, 0), busy(3, 0)), "gpu-2",
		},
		"the pod chosen before, among idle ones": {drained(2, byUs("scale-in")), "gpu-2"},
		"an idle pod before a busy one that was chosen before": {
			many(drained(2, byUs("scale-in")), busy(2, 0)), "gpu-3",
		},
		"no pod that an administrator drained for a scale-in": {drained(2, "scale-in"), "gpu-3"},
		"no pod whose drain was lifted": {
			record(2, func(n *slurm.Node) { n.Reason = byUs("scale-in") }), "gpu-3",
		},
		"the highest ordinal without a snapshot of Slurm": {
			func(s *plan.Snapshot) { s.Slurm, s.Answers = nil, false }, "gpu-3"},
	} {
		t.Run(name, func(t *testing.T) {
			next := plan.Next(scene(4, test.edit, replicas(3)))
			var chosen []string
			for _, wait := range next.Waits {
				chosen = append(chosen, wait.Pod.Name)
			}
			for _, action := range next.Actions {
				if action.Kind == plan.Delete {
					chosen = append(chosen, action.Pod.Name)
				}
			}
			if diff := cmp.Diff([]string{test.want}, chosen); diff != "" {
				t.Errorf("the chosen pod differs (-want +got):\n%s", diff)
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
		"does nothing in the desired state": {scene(3), nil},
		"creates the lowest free ordinals": {
			scene(2, replicas(4), pod(1, func(p *plan.Pod) { p.Ordinal = 2 })),
			[]string{"create ordinal 1: it is missing", "create ordinal 3: it is missing"},
		},
		"creates pods while Slurm is unreachable": {
			scene(0, replicas(1), func(s *plan.Snapshot) { s.Slurm, s.Answers = nil, false }),
			[]string{"create ordinal 0: it is missing"},
		},
		"waits for a terminating pod before it creates the next": {
			scene(2, pod(1, func(p *plan.Pod) { p.Terminating = true })), nil,
		},
		"does not count a terminating pod at a scale-in": {
			scene(2, replicas(1), pod(0, func(p *plan.Pod) { p.Terminating = true })), nil,
		},
		"drains a pod in excess": {
			scene(2, replicas(1)),
			[]string{
				"drain node gpu-1: slurm-operator: scale-in", "mark gpu-1: it waits for its scale-in",
				"keep gpu-1 (ScaleIn): gpu-1 is not drained yet",
			},
		},
		"deletes a drained pod in excess": {
			scene(2, replicas(1), drained(1, byUs("scale-in"))), []string{"delete gpu-1: the NodeSet needs fewer pods"},
		},
		"lifts the drains of a canceled scale-in": {
			scene(2, drained(1, byUs("scale-in"))), []string{"undrain node gpu-1: it may take jobs again"},
		},
		"deletes a pod that has exited": {
			scene(1, pod(0, func(p *plan.Pod) { p.Exited, p.ReadySince = true, time.Time{} })),
			[]string{"delete gpu-0: it has exited"},
		},
		"creates nothing for a NodeSet that is being deleted": {
			scene(0, replicas(2), set(func(set *plan.Set) { set.Deleting = true })), nil,
		},

		"has a pod on every Kubernetes node that wants one": {
			scene(1, daemon, on(0, "m1"), kubernetesNode("m3", true), kubernetesNode("m2", true)),
			[]string{"create on m2: the Kubernetes node has none", "create on m3: the Kubernetes node has none"},
		},
		"has no pod on a Kubernetes node that wants none": {
			scene(1, daemon, on(0, "m1"), kubernetesNode("m1", false)),
			[]string{
				"drain node gpu-0: slurm-operator: scale-in", "mark gpu-0: it waits for its scale-in",
				"keep gpu-0 (ScaleIn): gpu-0 is not drained yet",
			},
		},
		"keeps the pod of a deleted Node object": {
			scene(1, daemon, on(0, "m9")), []string{"create on m1: the Kubernetes node has none"},
		},
		"keeps a pod under a NoSchedule taint":    {scene(1, daemon, on(0, "m1"), tainted), nil},
		"creates no pod under a NoSchedule taint": {scene(0, daemon, tainted), nil},
		"creates no second pod while the first is terminating": {
			scene(1, daemon, on(0, "m1"), pod(0, func(p *plan.Pod) { p.Terminating = true })), nil,
		},
		"ignores replicas in DaemonSet mode": {scene(1, daemon, on(0, "m1"), replicas(0)), nil},
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
		"not with a pod that has exited": {
			scene(1, pod(0, func(p *plan.Pod) { p.Exited = true })), false,
		},
		"not with the NodeSet, which has its own retention policy": {
			scene(1, set(func(set *plan.Set) { set.Deleting = true }), drained(0, byUs("update"))), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, action := range plan.Next(test.scene).Actions {
				if action.Kind == plan.Delete && action.ScaledIn == test.want {
					return
				}
			}
			t.Errorf("no deletion with ScaledIn=%v in\n%s", test.want, plan.Next(test.scene))
		})
	}
}

// daemonOn sets DaemonSet mode, and the Kubernetes node of the first pod.
func daemonOn(kubernetesNode plan.KubernetesNode) edit {
	return func(s *plan.Snapshot) {
		s.Set.DaemonSet, s.Pods[0].Ordinal, s.KubernetesNodes["m1"] = true, -1, kubernetesNode
	}
}

// TestLostSlurmNodeRecords has ready pods whose record Slurm has lost.
func TestLostSlurmNodeRecords(t *testing.T) {
	lost := many(withoutRecord(0), pod(0, func(p *plan.Pod) { p.Registered = true }),
		func(s *plan.Snapshot) { s.DrainedSince["gpu-0"] = epoch.Add(-s.Set.Registration) })
	why := "delete gpu-0: Slurm has lost the record of its node, and slurmd does not register again by itself"
	check(t, map[string]row{
		"replaces a pod whose record is lost": {scene(2, lost), []string{why}},
		"waits for the record to be restored": {scene(2, lost, drainedAt(-time.Minute)), nil},
		"waits while a known job runs": {scene(2, lost, func(s *plan.Snapshot) {
			s.Slurm.Loads["gpu-0"] = slurm.Load{Running: 1, Job: 7, Until: epoch.Add(time.Hour)}
		}), []string{"keep gpu-0 (RecordLost): gpu-0 runs job 7 until 2026-03-01 13:00 UTC"}},
		"waits for a slurmctld that has just started": {
			scene(2, lost, func(s *plan.Snapshot) { s.Slurm.ControllerSince = epoch.Add(-time.Minute) }),
			[]string{"keep gpu-0 (RecordLost): its slurmd may register at any moment"},
		},
		"waits while Slurm is unreachable": {
			scene(2, lost, func(s *plan.Snapshot) { s.Answers = false }), nil,
		},
		"keeps a pod that never registered": {
			scene(2, lost, pod(0, func(p *plan.Pod) { p.Registered = false })), nil,
		},
		"keeps a pod that is not ready": {scene(2, lost, unready(0)), nil},
	})
}

func TestUpdate(t *testing.T) {
	cordoned := func(i int) edit { return pod(i, func(p *plan.Pod) { p.Cordoned = true }) }
	withheld := set(func(set *plan.Set) { set.Withheld = "no template" })
	failed := many(unready(0), pod(0, func(p *plan.Pod) { p.Failing = "CrashLoopBackOff" }))
	check(t, map[string]row{
		"creates nothing while pods are withheld": {
			scene(1, replicas(2), withheld), []string{"create nothing: no template"},
		},
		"replaces nothing while pods are withheld": {scene(1, outdated(0), withheld), nil},
		"replaces nothing unless the strategy allows it": {
			scene(1, outdated(0), set(func(set *plan.Set) { set.Update.Replace = false })), nil,
		},
		"drains as many as may be unavailable, idle ones first": {scene(4, outdated(0, 1, 2, 3), twoUnavailable,
			busy(0, time.Hour), busy(2, time.Hour)), []string{
			"drain node gpu-1: slurm-operator: update", "drain node gpu-3: slurm-operator: update",
			"keep gpu-1 (Update): gpu-1 is not drained yet", "keep gpu-3 (Update): gpu-3 is not drained yet",
		}},
		"drains none if another pod is missing": {
			scene(2, outdated(0, 1), replicas(3)), []string{"create ordinal 2: it is missing"},
		},
		"drains an unready pod first, and no other": {
			scene(2, outdated(0, 1), unready(1)),
			[]string{"drain node gpu-1: slurm-operator: update", "keep gpu-1 (Update): gpu-1 is not drained yet"},
		},
		"drains none if an administrator has drained another": {scene(2, outdated(1), drained(0, "broken fan")), nil},
		"keeps the pods chosen before": {
			scene(2, outdated(0, 1), drained(1, byUs("update")), busy(0, time.Minute), busy(1, time.Hour)),
			[]string{"keep gpu-1 (Update): gpu-1 runs job 101 until 2026-03-01 13:00 UTC"},
		},
		"keeps the pods chosen before while others are unavailable": {
			scene(3, outdated(0, 1), drained(1, byUs("update")), busy(0, time.Minute), busy(1, time.Hour),
				pod(2, func(p *plan.Pod) { p.ReadySince, p.Started, p.Created = time.Time{}, epoch, epoch })),
			[]string{"keep gpu-1 (Update): gpu-1 runs job 101 until 2026-03-01 13:00 UTC"},
		},
		"drains an idle pod instead of a busy one": {
			scene(2, outdated(0, 1), drained(1, byUs("update")), busy(1, time.Hour)),
			[]string{
				"drain node gpu-0: slurm-operator: update", "undrain node gpu-1: it may take jobs again",
				"keep gpu-0 (Update): gpu-0 is not drained yet",
			},
		},
		"drains a pod whose job ends instead of one whose job has no time limit": {
			scene(2, outdated(0, 1), drained(1, byUs("update")), busy(0, time.Hour), busy(1, 0)),
			[]string{
				"drain node gpu-0: slurm-operator: update", "undrain node gpu-1: it may take jobs again",
				"keep gpu-0 (Update): gpu-0 runs job 100 until 2026-03-01 13:00 UTC",
			},
		},
		"drains no other pod while it cannot lift a drain": {scene(2, outdated(0, 1), drained(1, byUs("update")),
			busy(1, time.Hour), notResponding(0), notResponding(1)), []string{
			"keep gpu-1 (Update): gpu-1 runs job 101 until 2026-03-01 13:00 UTC",
		}},
		"drains no other pod instead of a busy one without a budget": {scene(3, outdated(0, 1, 2), drained(1, byUs("update")),
			drained(2, byUs("update")), busy(1, time.Hour), busy(2, time.Hour)), []string{
			"keep gpu-1 (Update): gpu-1 runs job 101 until 2026-03-01 13:00 UTC",
			"keep gpu-2 (Update): gpu-2 runs job 102 until 2026-03-01 13:00 UTC",
		}},
		"drains no more than the budget if all pods are unready": {
			scene(3, outdated(0, 1, 2), unready(0), unready(1), unready(2)),
			[]string{"drain node gpu-0: slurm-operator: update", "keep gpu-0 (Update): gpu-0 is not drained yet"},
		},
		"lifts the drain of a canceled scale-in": {
			scene(3, outdated(0, 1, 2), drained(0, byUs("update")), drained(1, byUs("scale-in")), busy(0, time.Hour),
				busy(1, time.Hour), busy(2, time.Hour)),
			[]string{
				"undrain node gpu-1: it may take jobs again",
				"keep gpu-0 (Update): gpu-0 runs job 100 until 2026-03-01 13:00 UTC",
			},
		},
		"replaces a pod whose Slurm node is failing": {
			scene(2, outdated(0, 1), failing(0), drainedAt(-time.Minute)),
			[]string{"delete gpu-0: its revision is out of date"},
		},
		"replaces pods whose Slurm nodes are down within the budget": {
			scene(3, outdated(0, 1, 2), downSince(0), downSince(1)),
			[]string{"delete gpu-0: its revision is out of date"},
		},
		"replaces a pod that an administrator has drained": {
			scene(2, outdated(0, 1), drained(0, "broken fan")), []string{"delete gpu-0: its revision is out of date"},
		},
		"keeps a pod that a user has cordoned": {
			scene(2, outdated(0), cordoned(0), drained(0, byUs("pod is cordoned"))),
			[]string{"keep gpu-0 (Update): it is cordoned by its annotation"},
		},
		"leaves a pod in excess to the scale-in": {
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
		"continues with all once one pod has come up": {
			scene(3, outdated(0, 1), twoUnavailable, drained(0, byUs("update")), drained(1, byUs("update"))),
			[]string{"delete gpu-0: its revision is out of date", "delete gpu-1: its revision is out of date"},
		},
		"accepts a drained pod that has come up as the canary": {
			scene(2, outdated(1), twoUnavailable, drained(0, "broken fan"), drained(1, byUs("update"))),
			[]string{"delete gpu-1: its revision is out of date"},
		},
		"waits for the canary while it may come up": {scene(2, outdated(1), twoUnavailable, notStarted, withoutRecord(0),
			drainedSecond), []string{
			"keep gpu-1 (Update): the new revision is tried on another pod first",
		}},
		"tries a new revision on another pod if one does not terminate": {
			scene(3, outdated(0, 1, 2), twoUnavailable, terminates(0, time.Minute), drained(1, byUs("update"))),
			[]string{"delete gpu-1: its revision is out of date"},
		},
		"waits for a pod that terminates": {
			scene(3, outdated(0, 1, 2), twoUnavailable, terminates(0, time.Second), drained(1, byUs("update"))),
			[]string{"keep gpu-1 (Update): the new revision is tried on another pod first"},
		},
		"stops if as many pods do not terminate as may be unavailable": {
			scene(3, outdated(0, 1, 2), twoUnavailable, terminates(0, time.Minute), terminates(1, time.Hour)),
			[]string{
				"update stopped: 2 pods do not terminate, such as gpu-0, and at most 2 may be unavailable: the kubelet of " +
					"Kubernetes node m1 does not confirm it, or a finalizer keeps the pod; repair that node, or delete its Node " +
					"object if it is shut down",
			},
		},
		"replaces pods that do not work although others do not terminate": {
			scene(3, outdated(0, 1, 2), terminates(0, time.Hour), pod(2, func(p *plan.Pod) {
				p.Unscheduled, p.EverRan = true, false
			}), withoutRecord(2)),
			[]string{
				"delete gpu-2: its revision is out of date",
				"update stopped: 1 pods do not terminate, such as gpu-0, and at most 1 may be unavailable: the kubelet of " +
					"Kubernetes node m1 does not confirm it, or a finalizer keeps the pod; repair that node, or delete its Node " +
					"object if it is shut down",
			},
		},
		"stops if as many pods fail or do not terminate as may be unavailable": {
			scene(4, outdated(3), twoUnavailable, failed, terminates(2, time.Minute)),
			[]string{
				"update stopped: 1 of 2 pods of the new revision do not come up, such as gpu-0: CrashLoopBackOff" + correctIt,
			},
		},
		"stops and lifts its drains if the canary does not come up": {scene(2, outdated(1), twoUnavailable, failed,
			drained(1, byUs("update"))), []string{
			"undrain node gpu-1: it may take jobs again",
			"update stopped: 1 of 1 pods of the new revision do not come up, such as gpu-0: CrashLoopBackOff" + correctIt,
		}},
		"stops if as many pods fail as may be unavailable, although one is ready": {scene(4, outdated(3), twoUnavailable,
			failed, unready(1)), []string{
			"update stopped: 2 of 3 pods of the new revision do not come up, such as gpu-0: CrashLoopBackOff" + correctIt,
		}},
		"continues if fewer pods fail": {
			scene(4, outdated(3), twoUnavailable, failed),
			[]string{"drain node gpu-3: slurm-operator: update", "keep gpu-3 (Update): gpu-3 is not drained yet"},
		},
		"replaces pods of a failed revision": {
			scene(2, outdated(0, 1), failed, drained(0, byUs("update"))),
			[]string{"delete gpu-0: its revision is out of date"},
		},
		"does not stop because slurmctld has just started": {scene(2, outdated(1), drained(1, byUs("update")),
			busy(1, time.Hour),
			record(0, func(n *slurm.Node) { n.Flags |= slurm.FlagNotResponding }),
			func(s *plan.Snapshot) { s.Slurm.ControllerSince = epoch.Add(-time.Second) },
		), []string{"keep gpu-1 (Update): gpu-1 runs job 101 until 2026-03-01 13:00 UTC"}},
		"replaces only unscheduled pods while Slurm is unreachable": {
			scene(2, outdated(0, 1), notStarted, func(s *plan.Snapshot) { s.Answers, s.Pods[0].Unscheduled = false, true }),
			[]string{"delete gpu-0: its revision is out of date"},
		},
	})
}

// downSince sets a Slurm node to DOWN, long before the last snapshot.
func downSince(i int) edit {
	return many(record(i, func(n *slurm.Node) { n.State, n.Reason = slurm.StateDown, "Not responding" }),
		func(s *plan.Snapshot) { s.DrainedSince[s.Pods[i].SlurmNode] = epoch.Add(-time.Minute) })
}

// drainedSecond drains the Slurm node of the second pod for the update, if the first pod has no record.
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
		"drains a cordoned pod": {
			scene(1, cordoned), []string{"drain node gpu-0: slurm-operator: pod is cordoned"},
		},
		"drains a pod on a cordoned Kubernetes node": {
			scene(1, kubernetesNode), []string{"drain node gpu-0: slurm-operator: Kubernetes node m1 is cordoned"},
		},
		"does not repeat a drain": {scene(1, kubernetesNode, drained(0, byUs("Kubernetes node m1 is cordoned"))), nil},
		"updates the reason of a drain": {
			scene(1, cordoned, drained(0, byUs("update"))),
			[]string{"drain node gpu-0: slurm-operator: pod is cordoned"},
		},
		"lifts a drain of the operator without a cause": {
			scene(1, drained(0, byUs("pod is cordoned"))), []string{"undrain node gpu-0: it may take jobs again"},
		},
		"lifts none before the pod is ready": {scene(1, drained(0, byUs("update")), unready(0)), nil},
		"lifts none before the Slurm node responds": {
			scene(1, drained(0, byUs("update")), record(0, func(n *slurm.Node) { n.Flags |= slurm.FlagNotResponding })),
			nil,
		},
		"keeps the drain while the Kubernetes node object is gone": {
			scene(1, drained(0, byUs("Kubernetes node m1 is cordoned")), withoutKubernetesNode), nil,
		},
		"lifts another drain while the Kubernetes node object is gone": {
			scene(1, drained(0, byUs("pod is cordoned")), withoutKubernetesNode),
			[]string{"undrain node gpu-0: it may take jobs again"},
		},
		"never lifts a foreign drain":          {scene(1, drained(0, "broken fan")), nil},
		"never lifts a drain without a reason": {scene(1, drained(0, "")), nil},
		"never overwrites a foreign drain":     {scene(1, cordoned, drained(0, "broken fan")), nil},
		"never overwrites a foreign drain for a scale-in": {
			scene(1, replicas(0), drained(0, "broken fan"), busy(0, time.Hour)),
			[]string{
				"mark gpu-0: it waits for its scale-in",
				"keep gpu-0 (ScaleIn): gpu-0 runs job 100 until 2026-03-01 13:00 UTC",
			},
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
		"clears a reason of the operator without a drain": {
			scene(1, record(0, func(n *slurm.Node) { n.Reason = byUs("update") })),
			[]string{"clear-reason node gpu-0: its drain was lifted"},
		},
		"treats a drain with a cleared reason as foreign": {scene(1, drained(0, slurm.NoReason)), nil},
		"drains nothing while Slurm is unreachable": {
			scene(1, cordoned, func(s *plan.Snapshot) { s.Answers = false }), nil,
		},
		"drains nothing with an old snapshot": {scene(1, cordoned, old), nil},
		"lifts nothing with an old snapshot":  {scene(1, drained(0, byUs("update")), old), nil},
		"keeps the drain of a terminating pod": {
			scene(1, drained(0, byUs("scale-in")), pod(0, func(p *plan.Pod) { p.Terminating = true })), nil,
		},
		"drains nothing without a record": {scene(1, cordoned, withoutRecord(0)), nil},
		"drains all when the NodeSet is deleted": {
			scene(1, set(func(set *plan.Set) { set.Deleting = true })),
			[]string{
				"drain node gpu-0: slurm-operator: NodeSet is being deleted",
				"keep gpu-0 (Deletion): gpu-0 is not drained yet",
			},
		},
		"deletes all at once if jobs are waived": {
			scene(1, busy(0, 0), set(func(set *plan.Set) { set.Deleting, set.Waived = true, true })),
			[]string{
				"drain node gpu-0: slurm-operator: NodeSet is being deleted",
				"delete gpu-0: its NodeSet is being deleted",
			},
		},
	})
}

// withoutKubernetesNode deletes the object of the Kubernetes node.
func withoutKubernetesNode(s *plan.Snapshot) { delete(s.KubernetesNodes, "m1") }

func TestPrune(t *testing.T) {
	prune := set(func(set *plan.Set) { set.Prune = plan.PruneAll })
	// withoutPod removes the second pod and keeps its record.
	withoutPod := many(prune, func(s *plan.Snapshot) { s.Pods, s.Set.Replicas = s.Pods[:1], 1 })
	down := record(1, func(n *slurm.Node) { n.State = slurm.StateDown })
	scaledIn := func(set *plan.Set) { set.Prune = plan.PruneScaledIn }
	pruned := []string{"prune node gpu-1: it has no pod any more"}
	check(t, map[string]row{
		"deletes a record without a pod that is down":    {scene(2, withoutPod, down), pruned},
		"deletes a record that the operator has drained": {scene(2, withoutPod, drained(1, byUs("scale-in"))), pruned},
		"deletes none with PruneNever": {
			scene(2, withoutPod, down, set(func(set *plan.Set) { set.Prune = plan.PruneNever })), nil,
		},
		"deletes none that still responds": {scene(2, withoutPod), nil},
		"deletes by default a record drained for a scale-in": {
			scene(2, withoutPod, set(scaledIn), drained(1, byUs("scale-in"))), pruned,
		},
		"deletes by default a record drained for the deletion of the NodeSet": {
			scene(2, withoutPod, set(scaledIn), drained(1, byUs("NodeSet is being deleted"))), pruned,
		},
		"deletes by default no record that is only down": {scene(2, withoutPod, set(scaledIn), down), nil},
		"deletes by default no record drained for an update": {
			scene(2, withoutPod, set(scaledIn), drained(1, byUs("update"))), nil,
		},
		"deletes none that is reserved": {
			scene(2, withoutPod, drained(1, byUs("scale-in")),
				record(1, func(n *slurm.Node) { n.Reservation = "maintenance" })),
			nil,
		},
		"deletes none in maintenance": {
			scene(2, withoutPod, drained(1, byUs("scale-in")),
				record(1, func(n *slurm.Node) { n.Flags |= slurm.FlagMaintenance })),
			nil,
		},
		"deletes none that is failing": {scene(2, withoutPod, failing(1)), nil},
		"deletes none with jobs": {
			scene(2, down, func(s *plan.Snapshot) { s.Slurm.Loads["gpu-1"] = slurm.Load{Running: 1} }, withoutPod), nil,
		},
		"deletes none that others have drained": {scene(2, withoutPod, down, drained(1, "broken fan")), nil},
		"deletes none of another NodeSet": {scene(2, withoutPod, down, record(1, func(n *slurm.Node) {
			n.Comment = slurm.Owner{Namespace: "default", PodName: "set-1", NodeSetUID: "set-2"}.String()
		})), nil},
		"deletes none with a user's comment": {
			scene(2, withoutPod, down, record(1, func(n *slurm.Node) { n.Comment = "set-1" })), nil,
		},
		"deletes none while a pod is missing": {
			scene(2, withoutPod, down, replicas(2)), []string{"create ordinal 1: it is missing"},
		},
		"deletes none with an old snapshot": {
			scene(2, withoutPod, down, func(s *plan.Snapshot) { s.JustRead = false }), nil,
		},
		"deletes none of a terminating pod": {
			scene(2, prune, replicas(1), down, pod(1, func(p *plan.Pod) { p.Terminating = true })), nil,
		},
		"deletes none while another pod is terminating": {scene(3, prune,
			record(1, func(n *slurm.Node) { n.State = slurm.StateDown }), func(s *plan.Snapshot) {
				s.Pods, s.Set.Replicas = []plan.Pod{s.Pods[0], s.Pods[2]}, 1
				s.Pods[1].Terminating = true
			}), nil},
		"deletes none while Slurm is unreachable": {
			scene(2, withoutPod, down, func(s *plan.Snapshot) { s.Answers = false }), nil,
		},
	})
}

// TestPlanRequiresFreshSlurmState has plans that need a newer snapshot of Slurm, and plans that do not.
func TestPlanRequiresFreshSlurmState(t *testing.T) {
	old := func(s *plan.Snapshot) {
		s.JustRead = false
	}
	for name, test := range map[string]struct {
		scene *plan.Snapshot
		want  bool
	}{
		"not in the desired state": {scene(2, old), false},
		"before a drain":           {scene(2, old, replicas(1)), true},
		"before a drain is lifted": {scene(1, old, drained(0, byUs("update"))), true},
		"before a deletion":        {scene(1, old, replicas(0), drained(0, byUs("scale-in"))), true},
		"before a deletion of a pod whose slurmd may have started since the last read": {
			scene(1, notStarted, withoutRecord(0), replicas(0), func(s *plan.Snapshot) {
				s.Slurm.NodesAsOf = epoch.Add(-plan.MaxAbsenceAge)
			}), true,
		},
		"before a deletion of a pod whose Slurm node may have returned since the last read": {
			scene(1, downSince(0), replicas(0), func(s *plan.Snapshot) {
				s.Slurm.NodesAsOf = epoch.Add(-plan.MaxAbsenceAge)
			}), true,
		},
		"before a record is deleted": {
			scene(1, old, set(func(set *plan.Set) { set.Prune = plan.PruneAll }),
				func(s *plan.Snapshot) { s.Pods, s.Set.Replicas = nil, 0 }),
			true,
		},
		"not while it waits for jobs": {
			scene(1, replicas(0), drained(0, byUs("scale-in")), busy(0, time.Hour)), false,
		},
		"not while Slurm is unreachable": {
			scene(1, old, replicas(0), func(s *plan.Snapshot) { s.Answers = false }), false,
		},
		"not for a foreign drain": {scene(1, old, drained(0, "broken fan")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if next := plan.Next(test.scene); next.NeedsRefresh != test.want {
				t.Errorf("NeedsRefresh is %v, want %v, in\n%s", next.NeedsRefresh, test.want, next)
			}
		})
	}
}

// TestPlanRequiresFreshSlurmNodes has plans of which some Slurm nodes were read, and what they do and still need.
func TestPlanRequiresFreshSlurmNodes(t *testing.T) {
	reread := func(names ...string) edit {
		return func(s *plan.Snapshot) {
			s.Reread = map[string]bool{}
			for _, name := range names {
				s.Reread[name] = true
			}
		}
	}
	draining := many(replicas(0), drained(0, byUs("scale-in")), drained(1, byUs("scale-in")))
	for name, test := range map[string]struct {
		scene   *plan.Snapshot
		does    []string
		refresh []string
	}{
		"deletes the pods of Slurm nodes that were read": {
			scene(2, draining, reread("gpu-1")), []string{"gpu-1"}, []string{"gpu-0"},
		},
		"drains nothing before all Slurm nodes to drain were read": {
			scene(3, replicas(1), reread("gpu-2")), nil, []string{"gpu-1", "gpu-2"},
		},
		"deletes records that were read": {
			scene(2, set(func(set *plan.Set) { set.Prune = plan.PruneAll }), record(0, func(n *slurm.Node) {
				n.State = slurm.StateDown
			}), record(1, func(n *slurm.Node) { n.State = slurm.StateDown }),
				func(s *plan.Snapshot) { s.Pods, s.Set.Replicas = nil, 0 }, reread("gpu-0")),
			[]string{"gpu-0"}, []string{"gpu-1"},
		},
		"needs the complete list for a Slurm node without a record": {
			scene(2, draining, reread(), func(s *plan.Snapshot) {
				s.Slurm.Nodes = s.Slurm.Nodes[1:]
				s.Slurm.ControllerSince = time.Time{}
			}), nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			next := plan.Next(test.scene)
			var does []string
			for _, action := range next.Actions {
				if action.Kind != plan.MarkPod {
					does = append(does, action.SlurmNode)
				}
			}
			if diff := cmp.Diff(test.does, does); diff != "" {
				t.Errorf("acts on %s in\n%s", diff, next)
			}
			if diff := cmp.Diff(test.refresh, next.Refresh); diff != "" || !next.NeedsRefresh {
				t.Errorf("needs a refresh: %t, of %s", next.NeedsRefresh, diff)
			}
		})
	}
}

// TestRequeueTime has plans that must be made again later without an event.
func TestRequeueTime(t *testing.T) {
	for name, test := range map[string]struct {
		scene *plan.Snapshot
		want  time.Duration // zero for never
	}{
		"never in the desired state": {scene(2), 0},
		"when a pod has been ready for minReadySeconds": {
			scene(1, set(func(set *plan.Set) { set.MinReady = 2 * time.Hour })), time.Hour,
		},
		"when the registration of a slurmd times out": {
			scene(1, replicas(0), withoutRecord(0), pod(0, func(p *plan.Pod) { p.Started = epoch.Add(-time.Minute) })),
			time.Minute,
		},
		"when an exited pod may be replaced": {
			scene(1, pod(0,
				func(p *plan.Pod) { p.Exited, p.ReadySince, p.Created = true, time.Time{}, epoch.Add(-time.Second) })),
			9 * time.Second,
		},
		"when the canary of a new revision times out": {scene(2, outdated(1), notStarted), 119 * time.Second},
		"never for jobs, whose end is an event": {
			scene(1, replicas(0), drained(0, byUs("scale-in")), busy(0, time.Hour)), 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			next := plan.Next(test.scene)
			if got := next.Wake; (test.want == 0) != got.IsZero() ||
				(test.want > 0 && !got.Equal(epoch.Add(test.want))) {
				t.Errorf("requeue after %v, want %v, in\n%s", got.Sub(epoch), test.want, next)
			}
		})
	}
}
