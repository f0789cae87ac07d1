package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// elastic returns an edited scene of an elastic NodeSet with records for some Slurm nodes, all powered down.
func elastic(slots int, edits ...edit) *plan.Snapshot {
	s := scene(0)
	s.Set.Elastic = &plan.Elastic{
		Max: slots, Idle: 10 * time.Minute, Start: 5 * time.Minute, Backoff: 20 * time.Minute,
	}
	for i := range slots {
		name := fmt.Sprintf("gpu-%d", i)
		s.Set.Elastic.Slots = append(s.Set.Elastic.Slots, plan.Slot{Ordinal: i, SlurmNode: name})
		s.Slurm.Nodes = append(s.Slurm.Nodes, &slurm.Node{
			Name: name, State: slurm.StateIdle, Flags: slurm.FlagCloud | slurm.FlagPoweredDown,
		})
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

func sizes(change func(*plan.Elastic)) edit { return func(s *plan.Snapshot) { change(s.Set.Elastic) } }

// flags replaces the power flags of Slurm nodes.
func flags(flags slurm.Flags, nodes ...int) edit {
	return func(s *plan.Snapshot) {
		for _, i := range nodes {
			s.Slurm.Nodes[i].Flags = slurm.FlagCloud | flags
		}
	}
}

// waking makes Slurm power up nodes for a job.
func waking(job int64, nodes ...int) edit {
	return many(allocated(job, nodes...), flags(slurm.FlagPoweringUp|slurm.FlagNotResponding, nodes...))
}

// allocated allocates a job to Slurm nodes.
func allocated(job int64, nodes ...int) edit {
	return func(s *plan.Snapshot) {
		for _, i := range nodes {
			s.Slurm.Nodes[i].State, s.Slurm.Nodes[i].AllocatedCPUs = slurm.StateMixed, 1
			s.Slurm.Loads[s.Slurm.Nodes[i].Name] = slurm.Load{Other: 1, Job: job, Unlimited: true}
		}
	}
}

// started adds the pods of Slurm nodes, which were created some time ago and are not scheduled.
func started(ago time.Duration, nodes ...int) edit {
	return func(s *plan.Snapshot) {
		for _, i := range nodes {
			name := s.Slurm.Nodes[i].Name
			s.Pods = append(s.Pods, plan.Pod{
				Name: name, UID: "uid-" + name, SlurmNode: name, Ordinal: i, Revision: "r1", Created: epoch.Add(-ago),
				Unscheduled: true, Named: true,
			})
		}
	}
}

// placed schedules the pods of Slurm nodes.
func placed(nodes ...int) edit {
	return func(s *plan.Snapshot) {
		for i := range s.Pods {
			if pod := &s.Pods[i]; slices.Contains(nodes, pod.Ordinal) {
				pod.Unscheduled, pod.KubernetesNode = false, "m1"
			}
		}
	}
}

// idle makes Slurm nodes idle for some time, with pods that have been ready for an hour.
func idle(length time.Duration, nodes ...int) edit {
	return many(started(time.Hour, nodes...), placed(nodes...), flags(0, nodes...), func(s *plan.Snapshot) {
		for i := range s.Pods {
			if pod := &s.Pods[i]; slices.Contains(nodes, pod.Ordinal) {
				pod.EverRan, pod.Registered = true, true
				pod.Started, pod.ReadySince = epoch.Add(-time.Hour), epoch.Add(-time.Hour)
			}
		}
		for _, i := range nodes {
			s.Slurm.Nodes[i].LastBusy = epoch.Add(-length)
		}
	})
}

// seenOff records that Slurm nodes were seen powered down before the last snapshot.
func seenOff(nodes ...int) edit {
	return func(s *plan.Snapshot) {
		for _, i := range nodes {
			s.DrainedSince[s.Slurm.Nodes[i].Name] = epoch.Add(-time.Minute)
		}
	}
}

// closed drains Slurm nodes for a reason, some time ago.
func closed(reason string, ago time.Duration, nodes ...int) edit {
	return func(s *plan.Snapshot) {
		for _, i := range nodes {
			s.Slurm.Nodes[i].Flags |= slurm.FlagDrain
			s.Slurm.Nodes[i].Reason, s.Slurm.Nodes[i].ReasonAt = reason, epoch.Add(-ago)
		}
	}
}

func stale(s *plan.Snapshot) { s.JustRead = false }

// partial has too many jobs to list. Those that wait for their nodes should be known after a while.
func partial(identified time.Duration) edit {
	return func(s *plan.Snapshot) {
		s.Slurm.Partial, s.Slurm.Running = true, 12000
		if identified > 0 {
			s.Slurm.IdentifiedBy = epoch.Add(identified)
		}
	}
}

func TestElasticCreate(t *testing.T) {
	creates0 := []string{"create ordinal 0: Slurm powers its node up for job 7"}
	check(t, map[string]row{
		"creates nothing for Slurm nodes that are powered down": {elastic(3), nil},
		"creates the pods of the Slurm nodes that a job needs, and no others": {
			elastic(4, waking(7, 1, 3)),
			[]string{
				"create ordinal 1: Slurm powers its node up for job 7",
				"create ordinal 3: Slurm powers its node up for job 7",
			},
		},
		"waits until Slurm powers up all Slurm nodes of the job": {
			elastic(3, allocated(7, 0, 1), flags(slurm.FlagPoweringUp, 0)), nil,
		},
		"waits for a pod of an earlier power-up to terminate": {
			elastic(2, waking(7, 0, 1), started(time.Hour, 0), pod(0, func(p *plan.Pod) { p.Terminating = true })), nil,
		},
		"creates no pod for a job whose Slurm nodes are not powering up yet": {elastic(2, allocated(7, 0)), nil},
		"creates the pods of a second job when those of the first are scheduled": {
			elastic(4, waking(7, 0, 1), waking(8, 2, 3), started(time.Second, 0, 1), placed(0, 1)),
			[]string{
				"create ordinal 2: Slurm powers its node up for job 8", "create ordinal 3: Slurm powers its node up for job 8",
			},
		},
		"creates no pods of a second job while those of the first are not scheduled": {
			elastic(4, waking(8, 0, 1), waking(7, 2, 3), started(time.Second, 2, 3), placed(2)), nil,
		},
		"creates the pods of the older job first": {
			elastic(4, waking(8, 0, 1), waking(7, 2, 3)),
			[]string{
				"create ordinal 2: Slurm powers its node up for job 7", "create ordinal 3: Slurm powers its node up for job 7",
			},
		},
		"creates the pods of jobs with one node side by side": {
			elastic(3, waking(7, 0), waking(8, 1), waking(9, 2), started(time.Second, 0)),
			[]string{
				"create ordinal 1: Slurm powers its node up for job 8", "create ordinal 2: Slurm powers its node up for job 9",
			},
		},
		"creates nothing while Slurm does not answer": {
			elastic(2, waking(7, 0), func(s *plan.Snapshot) { s.Answers = false }), nil,
		},
		"creates nothing while the configuration is invalid": {
			elastic(1, waking(7, 0), set(func(set *plan.Set) { set.Withheld = "invalid" })), []string{"create nothing: invalid"},
		},
		"replaces the lost pod of a Slurm node with a job": {
			elastic(1, allocated(7, 0), flags(0, 0)), []string{"create ordinal 0: Slurm expects its node to be up"},
		},
		"powers down an idle Slurm node that has lost its pod": {
			elastic(1, flags(slurm.FlagNotResponding, 0)), []string{"power-down node gpu-0: it has no pod"},
		},
		"leaves a drained Slurm node without a pod to the administrator": {
			elastic(1, flags(0, 0), closed("broken fan", time.Hour, 0)), nil,
		},
		"creates the pods for jobs that are only counted": {
			elastic(3, waking(0, 0, 1), partial(0)),
			[]string{
				"create ordinal 0: Slurm powers its node up for an unidentified job of a large queue",
				"create ordinal 1: Slurm powers its node up for an unidentified job of a large queue",
			},
		},
		"waits until the job of a large queue is known":         {elastic(2, waking(0, 0), partial(time.Second)), nil},
		"creates the pods for known jobs of a large queue":      {elastic(1, waking(7, 0), partial(time.Second)), creates0},
		"waits until the jobs are read after their Slurm nodes": {elastic(1, waking(0, 0), stale), nil},
		"creates no pod with another template than its record": {
			elastic(1, waking(7, 0), stale, sizes(func(e *plan.Elastic) { e.Slots[0].Mismatched = true })), nil,
		},
	})
}

func TestElasticGiveUp(t *testing.T) {
	const full = "1 of 3 pods for job 7 could not be scheduled within 5m0s"
	check(t, map[string]row{
		"waits until the start timeout": {elastic(4, waking(7, 0, 1, 2), started(time.Minute, 0, 1, 2), placed(0, 1)), nil},
		"gives up all Slurm nodes of a job, and closes those that Kubernetes has no room for": {
			elastic(5, waking(7, 0, 1, 2), started(6*time.Minute, 0, 1, 2), placed(0, 1)),
			[]string{
				"force-power-down node gpu-0: " + full, "force-power-down node gpu-1: " + full,
				"force-power-down node gpu-2: " + full,
				"drain node gpu-3: slurm-operator: no capacity in Kubernetes",
				"drain node gpu-4: slurm-operator: no capacity in Kubernetes",
			},
		},
		"forces no Slurm node that has registered": {
			elastic(2, waking(7, 0, 1), started(6*time.Minute, 0, 1), placed(0), flags(0, 0)),
			[]string{
				"force-power-down node gpu-1: 1 of 1 pods for job 7 could not be scheduled within 5m0s",
			},
		},
		"forces nothing without a snapshot that was read for it": {
			elastic(1, waking(7, 0), started(6*time.Minute, 0), stale), nil,
		},
		"closes no other Slurm nodes if pods are scheduled and do not start": {
			elastic(2, waking(7, 0), started(6*time.Minute, 0), placed(0)),
			[]string{"force-power-down node gpu-0: the Slurm nodes for job 7 did not all register within 5m0s"},
		},
		"closes a Slurm node whose pod could not be scheduled, and deletes the pod": {
			elastic(1, started(6*time.Minute, 0), flags(slurm.FlagPoweringDown, 0)),
			[]string{
				"drain node gpu-0: slurm-operator: no capacity in Kubernetes",
				"delete gpu-0: its Slurm node is powered down",
			},
		},
		"closes a Slurm node whose pod did not start": {
			elastic(1, started(6*time.Minute, 0), placed(0), flags(slurm.FlagPoweringDown, 0), seenOff(0)),
			[]string{
				"drain node gpu-0: slurm-operator: its pod did not start in time",
				"delete gpu-0: its Slurm node is powered down",
			},
		},
		"keeps Slurm nodes closed until the backoff is over": {
			elastic(2, closed(byUs("no capacity in Kubernetes"), 19*time.Minute, 0),
				closed(byUs("its pod did not start in time"), 19*time.Minute, 1)), nil,
		},
		"opens Slurm nodes after the backoff": {
			elastic(1, closed(byUs("no capacity in Kubernetes"), 21*time.Minute, 0)),
			[]string{"undrain node gpu-0: it may take jobs again"},
		},
		"leaves the drain of an administrator": {elastic(1, closed("no capacity in Kubernetes", time.Hour, 0)), nil},
		"opens a Slurm node after slurmctld gave it up": {
			elastic(1, timedOut(21*time.Minute, "ResumeTimeout reached")),
			[]string{"resume node gpu-0: slurmctld gave up its power-up; it may be tried again"},
		},
		"leaves such a Slurm node closed until the backoff is over": {
			elastic(1, timedOut(time.Minute, "ResumeTimeout reached")), nil,
		},
		"leaves a Slurm node that an administrator has set down": {
			elastic(1, timedOut(time.Hour, "bad DIMM")), nil,
		},
		"gives up a power-up when the record is about to change": {
			elastic(1, waking(7, 0), sizes(func(e *plan.Elastic) { e.Slots[0].Mismatched = true })),
			[]string{"force-power-down node gpu-0: its record is about to change"},
		},
		"creates no further pods of a job whose records are about to change": {
			elastic(2, waking(7, 0, 1), started(time.Minute, 0),
				sizes(func(e *plan.Elastic) { e.Slots[1].Mismatched = true })), nil,
		},
		"creates the pods of a job before a record changes in other respects": {
			elastic(1, waking(7, 0), sizes(func(e *plan.Elastic) { e.Slots[0].Outdated = true })),
			[]string{"create ordinal 0: Slurm powers its node up for job 7"},
		},
		"creates the pods of a job before the record is removed": {
			elastic(2, waking(7, 1), sizes(func(e *plan.Elastic) { e.Max, e.Slots[1].Outdated = 1, true })),
			[]string{"create ordinal 1: Slurm powers its node up for job 7"},
		},
		"creates the pods of jobs that are not known before a record changes in other respects": {
			elastic(2, waking(0, 0, 1), partial(0), sizes(func(e *plan.Elastic) { e.Slots[0].Outdated = true })),
			[]string{
				"create ordinal 0: Slurm powers its node up for an unidentified job of a large queue",
				"create ordinal 1: Slurm powers its node up for an unidentified job of a large queue",
			},
		},
		"gives up nothing whose job is not in the list of jobs yet": {
			elastic(1, waking(0, 0), stale, sizes(func(e *plan.Elastic) { e.Slots[0].Outdated = true })), nil,
		},
		"gives up only the Slurm node that is late, if its job is not known": {
			elastic(2, waking(0, 0, 1), started(6*time.Minute, 0), started(time.Minute, 1), placed(0, 1), partial(0)),
			[]string{
				"force-power-down node gpu-0: the Slurm nodes for an unidentified job of a large queue did not all register " +
					"within 5m0s",
			},
		},
		"replaces no lost pod of a job that may be the one that is given up": {
			elastic(2, waking(0, 0), started(6*time.Minute, 0), placed(0), allocated(0, 1), flags(0, 1), partial(0)),
			[]string{
				"force-power-down node gpu-0: the Slurm nodes for an unidentified job of a large queue did not all register " +
					"within 5m0s",
			},
		},
		"gives up nothing while its job is about to be known": {
			elastic(1, waking(0, 0), started(6*time.Minute, 0), placed(0), partial(time.Second)), nil,
		},
		"gives up a power-up without a job before the record is removed": {
			elastic(2, flags(slurm.FlagPoweringUp, 1), sizes(func(e *plan.Elastic) { e.Max, e.Slots[1].Outdated = 1, true })),
			[]string{"force-power-down node gpu-1: its record is about to change"},
		},
		"keeps the pod of a job beyond the maximum": {
			elastic(2, waking(7, 1), started(time.Minute, 1), placed(1),
				sizes(func(e *plan.Elastic) { e.Max, e.Slots[1].Outdated = 1, true })),
			[]string{
				"mark gpu-1: it waits for its scale-in",
				"keep gpu-1 (ScaleIn): gpu-1 runs job 7, and job 7 has no time limit",
			},
		},
		"replaces a pod whose record is to change after its job": {
			elastic(1, idle(time.Minute, 0), allocated(7, 0), sizes(func(e *plan.Elastic) { e.Slots[0].Outdated = true })),
			[]string{
				"drain node gpu-0: slurm-operator: update",
				"keep gpu-0 (Update): gpu-0 runs job 7, and job 7 has no time limit",
			},
		},
		"replaces an idle pod whose record is to change": {
			elastic(1, idle(time.Minute, 0), sizes(func(e *plan.Elastic) { e.Slots[0].Outdated = true })),
			[]string{"drain node gpu-0: slurm-operator: update", "keep gpu-0 (Update): gpu-0 is not drained yet"},
		},
		"gives up a power-up whose old pod does not terminate": {
			elastic(1, waking(7, 0), started(time.Hour, 0), placed(0), terminates(0, 5*time.Minute)),
			[]string{"force-power-down node gpu-0: the Slurm nodes for job 7 did not all register within 5m0s"},
		},
		"waits for an old pod as long as for a new one": {
			elastic(1, waking(7, 0), started(time.Hour, 0), placed(0), terminates(0, 4*time.Minute)), nil,
		},
		"creates pods of later jobs while an old pod does not terminate": {
			elastic(4, waking(7, 0, 1), waking(8, 2, 3), started(time.Hour, 0), placed(0), terminates(0, time.Minute)),
			[]string{
				"create ordinal 2: Slurm powers its node up for job 8", "create ordinal 3: Slurm powers its node up for job 8",
			},
		},
		"creates none while an old pod may terminate in time": {
			elastic(4, waking(7, 0, 1), waking(8, 2, 3), started(time.Hour, 0), placed(0), terminates(0, 30*time.Second)),
			nil,
		},
		"closes a Slurm node whose pod does not terminate": {
			elastic(1, idle(time.Hour, 0), flags(slurm.FlagPoweredDown, 0), terminates(0, time.Minute)),
			[]string{"drain node gpu-0: slurm-operator: its pod did not start in time"},
		},
		"leaves a Slurm node open whose pod may terminate in time": {
			elastic(1, idle(time.Hour, 0), flags(slurm.FlagPoweredDown, 0), terminates(0, time.Second)), nil,
		},
	})
}

// TestElasticConfirmed has a power-up that is given up, and a later snapshot.
func TestElasticConfirmed(t *testing.T) {
	late := many(waking(7, 0, 1), started(6*time.Minute, 0, 1), placed(0, 1))
	for name, test := range map[string]struct {
		edit edit
		want []string // Slurm nodes
	}{
		"nothing has changed":                    {many(), []string{"gpu-0", "gpu-1"}},
		"a slurmd has registered":                {flags(0, 0), []string{"gpu-1"}},
		"all slurmds have registered":            {flags(0, 0, 1), nil},
		"an administrator has drained a node":    {closed("broken fan", time.Second, 0), []string{"gpu-1"}},
		"slurmctld does not answer":              {func(s *plan.Snapshot) { s.Answers = false }, nil},
		"slurmctld has given up another node":    {flags(slurm.FlagPoweredDown, 1), []string{"gpu-0"}},
		"the NodeSet waits longer for its nodes": {sizes(func(e *plan.Elastic) { e.Start = time.Hour }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			next := plan.Next(elastic(2, late))
			planned := next.Of(plan.ForcePowerDown)
			if len(planned) != 2 {
				t.Fatalf("the plan is\n%s", next)
			}
			var got []string
			for _, action := range plan.Confirmed(planned, elastic(2, late, test.edit)) {
				got = append(got, action.SlurmNode)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// timedOut makes slurmctld set the first Slurm node down, for a reason.
func timedOut(ago time.Duration, reason string) edit {
	return record(0, func(n *slurm.Node) {
		n.State, n.Reason, n.ReasonAt = slurm.StateDown, reason, epoch.Add(-ago)
	})
}

func TestElasticPowerDown(t *testing.T) {
	const down = ": it has been idle for 10m0s"
	soon := sizes(func(e *plan.Elastic) { e.Idle = 20 * time.Second })
	minimum := func(n int) edit { return sizes(func(e *plan.Elastic) { e.Min = n }) }
	warm := func(n int) edit { return sizes(func(e *plan.Elastic) { e.Warm = n }) }
	check(t, map[string]row{
		"waits until the idle timeout": {elastic(1, idle(9*time.Minute, 0)), nil},
		"powers idle Slurm nodes down": {elastic(2, idle(time.Hour, 0)), []string{"power-down node gpu-0" + down}},
		"needs a snapshot read for it": {elastic(1, idle(time.Hour, 0), stale), nil},
		"gives Slurm time to use an idle Slurm node while jobs wait": {
			elastic(1, idle(time.Minute, 0), soon, func(s *plan.Snapshot) { s.Slurm.Pending = 1 }), nil,
		},
		"powers idle Slurm nodes down while jobs wait for others": {
			elastic(1, idle(2*time.Minute, 0), soon, func(s *plan.Snapshot) { s.Slurm.Pending = 1 }),
			[]string{"power-down node gpu-0: it has been idle for 1m30s"},
		},
		"keeps a Slurm node with a job": {elastic(1, idle(time.Hour, 0), allocated(7, 0)), nil},
		"keeps a Slurm node with a suspended job": {
			elastic(1, idle(time.Hour, 0), func(s *plan.Snapshot) {
				s.Slurm.Loads["gpu-0"] = slurm.Load{Other: 1, Job: 7}
			}), nil,
		},
		"keeps a drained Slurm node": {elastic(1, idle(time.Hour, 0), closed("broken fan", time.Hour, 0)), nil},
		"keeps a Slurm node that is planned for a job": {
			elastic(1, idle(time.Hour, 0), flags(slurm.FlagPlanned, 0)), nil,
		},
		"keeps the minimum": {
			elastic(3, idle(time.Hour, 0, 1, 2), minimum(2)), []string{"power-down node gpu-2" + down},
		},
		"keeps warm Slurm nodes": {
			elastic(3, idle(time.Hour, 0, 1, 2), allocated(7, 0), warm(1)), []string{"power-down node gpu-2" + down},
		},
		"deletes the pod of a Slurm node that is powering down": {
			elastic(1, idle(time.Hour, 0), flags(slurm.FlagPoweringDown, 0), seenOff(0)),
			[]string{"delete gpu-0: its Slurm node is powered down"},
		},
		"deletes the pod of a Slurm node that is powered down": {
			elastic(1, idle(time.Hour, 0), flags(slurm.FlagPoweredDown, 0), seenOff(0)),
			[]string{"delete gpu-0: its Slurm node is powered down"},
		},
		"keeps the pod of a Slurm node that waits for its job before it powers down": {
			elastic(1, idle(time.Hour, 0), allocated(7, 0), flags(slurm.FlagPowerDown, 0)), nil,
		},
		"keeps the pod of a powered-down Slurm node that a job was allocated to": {
			elastic(1, idle(time.Hour, 0), allocated(7, 0), flags(slurm.FlagPoweredDown, 0), seenOff(0)), nil,
		},
		"keeps the pod of a powered-down Slurm node without history": {
			elastic(1, idle(time.Hour, 0), flags(slurm.FlagPoweredDown, 0)),
			[]string{
				"keep gpu-0 (PoweredDown): the last snapshot of Slurm is too old to prove that it has no jobs",
			},
		},
		"deletes an outdated pod of a powered-down Slurm node without a canary": {
			elastic(2, idle(time.Hour, 0, 1), flags(slurm.FlagPoweredDown, 0), seenOff(0), allocated(7, 1), outdated(0)),
			[]string{"delete gpu-0: its Slurm node is powered down"},
		},
	})
}

func TestElasticPowerUp(t *testing.T) {
	check(t, map[string]row{
		"powers up the minimum": {
			elastic(4, sizes(func(e *plan.Elastic) { e.Min = 2 })),
			[]string{
				"power-up node gpu-0: more Slurm nodes should be up", "power-up node gpu-1: more Slurm nodes should be up",
			},
		},
		"powers up an idle Slurm node in addition to busy ones": {
			elastic(3, idle(0, 0), allocated(7, 0), sizes(func(e *plan.Elastic) { e.Warm = 1 })),
			[]string{"power-up node gpu-1: more idle Slurm nodes should be up"},
		},
		"counts Slurm nodes that are about to be powered up": {
			elastic(2, flags(slurm.FlagPoweredDown|slurm.FlagPowerUp, 0), sizes(func(e *plan.Elastic) { e.Warm = 1 })), nil,
		},
		"powers no drained Slurm node up": {
			elastic(2, closed("broken fan", time.Hour, 0), sizes(func(e *plan.Elastic) { e.Min = 1 })),
			[]string{"power-up node gpu-1: more Slurm nodes should be up"},
		},
		"waits until a Slurm node is powered down": {
			elastic(1, flags(slurm.FlagPoweringDown, 0), sizes(func(e *plan.Elastic) { e.Min = 1 })), nil,
		},
		"creates the pod of a Slurm node without a job": {
			elastic(1, flags(slurm.FlagPoweringUp, 0)), []string{"create ordinal 0: Slurm powers its node up"},
		},
	})
}

func TestElasticKeepsDrainOfAPowerUp(t *testing.T) {
	check(t, map[string]row{
		"gives a job up without opening a Slurm node that an administrator has drained": {
			elastic(2, waking(7, 0, 1), started(6*time.Minute, 0, 1), placed(0, 1), closed("broken fan", time.Minute, 1)),
			[]string{"force-power-down node gpu-0: the Slurm nodes for job 7 did not all register within 5m0s"},
		},
		"creates no pods of a job that is given up, if an administrator has drained its first Slurm node": {
			elastic(3, waking(7, 0, 1, 2), started(6*time.Minute, 1), placed(1), closed("broken fan", time.Minute, 0)),
			[]string{
				"force-power-down node gpu-1: the Slurm nodes for job 7 did not all register within 5m0s",
				"force-power-down node gpu-2: the Slurm nodes for job 7 did not all register within 5m0s",
			},
		},
	})
}

func TestElasticRecords(t *testing.T) {
	lost := many(flags(slurm.FlagNotResponding, 0), record(0, func(n *slurm.Node) {
		n.State, n.Reason = slurm.StateDown, "Not responding"
	}))
	changing := sizes(func(e *plan.Elastic) { e.Slots[0].Outdated, e.Slots[0].Mismatched = true, true })
	check(t, map[string]row{
		"closes a powered-down Slurm node whose record changes": {
			elastic(2, sizes(func(e *plan.Elastic) { e.Slots[1].Outdated = true })),
			[]string{"drain node gpu-1: slurm-operator: update"},
		},
		"leaves it alone while slurmctld does not run with the latest configuration": {
			elastic(2, closed(byUs("update"), time.Minute, 0), sizes(func(e *plan.Elastic) {
				e.Slots[0].Pending, e.Slots[1].Pending, e.Slots[1].Outdated = true, true, true
			})), nil,
		},
		"closes a Slurm node that is down because its pod is gone, if a new pod would not match its record": {
			elastic(1, lost, changing), []string{"drain node gpu-0: slurm-operator: update"},
		},
		"leaves it alone if an administrator has set it down": {
			elastic(1, lost, changing, record(0, func(n *slurm.Node) { n.Reason = "broken fan" })), nil,
		},
		"creates its pod again if it would match the record": {
			elastic(1, lost), []string{"create ordinal 0: Slurm expects its node to be up"},
		},
		"powers it down when its record has changed": {
			elastic(1, lost, closed(byUs("update"), time.Minute, 0)), []string{"power-down node gpu-0: it has no pod"},
		},
		"opens it afterwards": {
			elastic(1, closed(byUs("update"), time.Minute, 0)), []string{"undrain node gpu-0: it may take jobs again"},
		},
		"powers a Slurm node down after its pod was deleted for an update": {
			elastic(1, flags(0, 0), closed(byUs("update"), time.Minute, 0)), []string{"power-down node gpu-0: it has no pod"},
		},
		"closes Slurm nodes beyond the maximum": {
			elastic(2, sizes(func(e *plan.Elastic) { e.Max = 1 })), []string{"drain node gpu-1: slurm-operator: scale-in"},
		},
		"drains pods beyond the maximum": {
			elastic(2, idle(0, 1), sizes(func(e *plan.Elastic) { e.Max = 1 })),
			[]string{
				"drain node gpu-1: slurm-operator: scale-in", "mark gpu-1: it waits for its scale-in",
				"keep gpu-1 (ScaleIn): gpu-1 is not drained yet",
			},
		},
		"closes all Slurm nodes of a deleted NodeSet, and gives up its power-ups": {
			elastic(2, waking(7, 0), set(func(set *plan.Set) { set.Deleting = true })),
			[]string{
				"force-power-down node gpu-0: the NodeSet is being deleted",
				"drain node gpu-1: slurm-operator: NodeSet is being deleted",
			},
		},
		"deletes no record from Slurm": {
			elastic(1, flags(0, 0), set(func(set *plan.Set) { set.Prune = plan.PruneAll }),
				record(0, func(n *slurm.Node) {
					n.Comment = slurm.Owner{NodeSetName: setName, NodeSetUID: "set-1"}.String()
				})),
			[]string{"power-down node gpu-0: it has no pod"},
		},
	})
}

func TestElasticSummary(t *testing.T) {
	next := plan.Next(elastic(8, waking(7, 0, 1), idle(0, 2, 3), allocated(8, 3),
		closed(byUs("no capacity in Kubernetes"), 5*time.Minute, 4, 5)))
	want := plan.Summary{
		Up: 2, Starting: 2, Busy: 3, Unplaced: 2, Open: 6, Retry: epoch.Add(15 * time.Minute),
		Causes: plan.Causes{PoweringUp: 2, Busy: 1, Idle: 1}, Jobs: []int64{7, 8},
	}
	if diff := cmp.Diff(want, next.Elastic); diff != "" {
		t.Errorf("summary differs (-want +got):\n%s", diff)
	}
	if next.Desired != 4 {
		t.Errorf("%d pods are desired", next.Desired)
	}
	held := plan.Next(elastic(4, waking(7, 0, 1), waking(8, 2, 3), started(time.Second, 0, 1))).Elastic.Held
	if !strings.Contains(held, "job 8") || !strings.Contains(held, "job 7") {
		t.Errorf("what is held is described as %q", held)
	}
}

// A record that is not as the spec wants it counts until it has changed, or is removed. Of a Slurm node with a pod, the
// pod counts as outdated.
func TestOutdatedRecordsAreCounted(t *testing.T) {
	outdated := func(nodes ...int) edit {
		return sizes(func(e *plan.Elastic) {
			for _, i := range nodes {
				e.Slots[i].Outdated = true
			}
		})
	}
	for name, test := range map[string]struct {
		is   *plan.Snapshot
		want plan.Summary
	}{
		"none": {elastic(3), plan.Summary{}},
		"of powered-down nodes": {
			elastic(3, outdated(0, 2)), plan.Summary{Outdated: 2, FirstOutdated: "gpu-0"},
		},
		"not of nodes with pods": {
			elastic(3, idle(time.Minute, 0), outdated(0, 1)), plan.Summary{Outdated: 1, FirstOutdated: "gpu-1"},
		},
		"to be removed": {
			elastic(3, outdated(2), sizes(func(e *plan.Elastic) { e.Max = 2 })),
			plan.Summary{Outdated: 1, FirstOutdated: "gpu-2"},
		},
		"that slurmctld does not have yet": {
			elastic(3, outdated(2), func(s *plan.Snapshot) { s.Slurm.Nodes = s.Slurm.Nodes[:2] }),
			plan.Summary{Missing: 1},
		},
		"with which slurmctld does not run yet": {
			elastic(1, sizes(func(e *plan.Elastic) { e.Slots[0].Pending = true })), plan.Summary{Pending: true},
		},
		"not if the NodeSet is no longer elastic": {
			elastic(3, outdated(0), sizes(func(e *plan.Elastic) { e.Ended = true })), plan.Summary{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := plan.Next(test.is).Elastic
			got := plan.Summary{
				Missing: is.Missing, Outdated: is.Outdated, FirstOutdated: is.FirstOutdated, Pending: is.Pending,
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
