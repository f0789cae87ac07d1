package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// formerlyFixed makes pods and their Slurm nodes those of a NodeSet that was not elastic.
func formerlyFixed(nodes ...int) edit {
	return many(idle(time.Hour, nodes...), func(s *plan.Snapshot) {
		for i := range s.Pods {
			s.Pods[i].Dynamic, s.Pods[i].Revision = true, "r0"
		}
		for _, i := range nodes {
			registered(i)(s)
		}
	})
}

// registered makes a Slurm node one that has registered without a record.
func registered(i int) edit {
	return record(i, func(n *slurm.Node) {
		n.Flags = slurm.FlagDynamicNorm
		n.Comment = slurm.Owner{
			Namespace: "default", PodName: n.Name, NodeSetName: setName, NodeSetUID: "set-1",
		}.String()
	})
}

// unknown removes Slurm nodes from the last one on.
func unknown(count int) edit {
	return func(s *plan.Snapshot) { s.Slurm.Nodes = s.Slurm.Nodes[:len(s.Slurm.Nodes)-count] }
}

func TestNodeSetBecomesElastic(t *testing.T) {
	check(t, map[string]row{
		"replaces its pods one by one, as in an update": {
			elastic(3, formerlyFixed(0, 1)),
			[]string{"drain node gpu-0: slurm-operator: update", "keep gpu-0 (Update): gpu-0 is not drained yet"},
		},
		"keeps a pod with a job": {
			elastic(1, formerlyFixed(0), allocated(7, 0), drained(0, byUs("update"))),
			[]string{"keep gpu-0 (Update): gpu-0 runs job 7, and job 7 has no time limit"},
		},
		"deletes a pod without jobs, which no other pod replaces": {
			elastic(3, formerlyFixed(0, 1), drained(0, byUs("update"))),
			[]string{"delete gpu-0: its revision is out of date"},
		},
		"deletes the record of a Slurm node without a pod, so that it gets one in slurm.conf": {
			elastic(2, formerlyFixed(1), registered(0), drained(0, byUs("update")), set(func(set *plan.Set) {
				set.Prune = plan.PruneNever
			})),
			[]string{"prune node gpu-0: it has no pod any more"},
		},
		"keeps the record of a Slurm node that an administrator has drained": {
			elastic(2, formerlyFixed(1), registered(0), drained(0, "broken fan")), nil,
		},
		"replaces no more pods before slurmctld has the records of the others": {
			elastic(3, formerlyFixed(0, 1), unknown(1)), nil,
		},
		"powers none of its pods down": {
			elastic(2, formerlyFixed(0, 1), outdatedIsKept), nil,
		},
	})
}

// outdatedIsKept stops updates.
func outdatedIsKept(s *plan.Snapshot) { s.Set.Update.Replace = false }

// noLongerElastic removes spec.elastic.
func noLongerElastic(replicas int) edit {
	return func(s *plan.Snapshot) {
		slots := s.Set.Elastic.Slots
		s.Set.Elastic = &plan.Elastic{Ended: true, Start: 10 * time.Minute, Backoff: 10 * time.Minute}
		s.Set.Replicas, s.Set.Revision = replicas, "r2"
		for _, slot := range slots {
			slot.Outdated, slot.Mismatched = true, true
			s.Set.Elastic.Slots = append(s.Set.Elastic.Slots, slot)
		}
	}
}

func TestNodeSetIsNoLongerElastic(t *testing.T) {
	check(t, map[string]row{
		"closes Slurm nodes that are powered down, and creates no pods before their records are removed": {
			elastic(2, noLongerElastic(2)),
			[]string{"drain node gpu-0: slurm-operator: update", "drain node gpu-1: slurm-operator: update"},
		},
		"creates pods of Slurm nodes without a record": {
			elastic(1, closed(byUs("update"), time.Minute, 0), noLongerElastic(2)), []string{"create ordinal 1: it is missing"},
		},
		"replaces its pods one by one, as in an update": {
			elastic(2, idle(time.Hour, 0, 1), noLongerElastic(2)),
			[]string{"drain node gpu-0: slurm-operator: update", "keep gpu-0 (Update): gpu-0 is not drained yet"},
		},
		"keeps a pod with a job": {
			elastic(1, idle(0, 0), allocated(7, 0), drained(0, byUs("update")), noLongerElastic(1)),
			[]string{"keep gpu-0 (Update): gpu-0 runs job 7, and job 7 has no time limit"},
		},
		"waits for a job that is about to start in an existing pod": {
			elastic(1, waking(7, 0), started(time.Second, 0), placed(0), noLongerElastic(1)),
			[]string{
				"keep gpu-0 (Update): gpu-0 runs job 7, and job 7 has no time limit",
			},
		},
		"returns a job without pods to the queue": {
			elastic(1, waking(7, 0), noLongerElastic(1)),
			[]string{"force-power-down node gpu-0: its record is about to change"},
		},
		"leaves a Slurm node alone that an administrator has drained": {
			elastic(1, closed("broken fan", time.Minute, 0), noLongerElastic(1)), nil,
		},
		"leaves a Slurm node alone that an administrator has set down": {
			elastic(1, flags(0, 0), noLongerElastic(1), record(0, func(n *slurm.Node) {
				n.State, n.Reason = slurm.StateDown, "broken fan"
			})), nil,
		},
		"closes a Slurm node that is down because its pod is gone": {
			elastic(1, flags(slurm.FlagNotResponding, 0), noLongerElastic(1), record(0, func(n *slurm.Node) {
				n.State, n.Reason = slurm.StateDown, "Not responding"
			})),
			[]string{"drain node gpu-0: slurm-operator: update"},
		},
		"powers no Slurm node down": {
			elastic(1, idle(time.Hour, 0), noLongerElastic(1), outdatedIsKept), nil,
		},
	})
}

func TestPodsWaitForTheRemovalOfRecords(t *testing.T) {
	for want, edit := range map[string]edit{
		"waits until slurmctld has removed the record": closed(byUs("update"), time.Minute, 0),
		"waits until you resume it":                    closed("broken fan", time.Minute, 0),
	} {
		if held := plan.Next(elastic(1, edit, noLongerElastic(1))).Elastic.Held; !strings.Contains(held, want) {
			t.Errorf("%q is described as %q", want, held)
		}
	}
}
