package plan_test

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// read returns the state of Slurm.
func (w *elasticModel) read() *slurm.Snapshot {
	snapshot := &slurm.Snapshot{
		NodesAsOf: w.now, JobsAsOf: w.now, ControllerSince: epoch.Add(-time.Hour),
		Queue: slurm.Queue{Loads: map[string]slurm.Load{}, Partial: w.counted},
	}
	for _, job := range w.jobs {
		if len(job.nodes) == 0 && !job.finished {
			snapshot.Pending++
		}
	}
	for i, node := range w.nodes {
		if node.kind == isUnknown {
			continue
		}
		record := &slurm.Node{Name: slotName(i), State: slurm.StateIdle, Flags: node.kind.flag(), Reason: node.reason,
			ReasonAt: node.reasonAt, LastBusy: node.lastBusy, Comment: modelOwner}
		record.Flags |= map[int]slurm.Flags{
			isOff: slurm.FlagPoweredDown, isWaking: slurm.FlagPoweringUp | slurm.FlagNotResponding,
			isLeaving: slurm.FlagPowerDown, isGoing: slurm.FlagPoweringDown,
		}[node.power]
		if node.power == isUp && node.pod == "" {
			record.Flags |= slurm.FlagNotResponding
		}
		if node.wanted {
			record.Flags |= slurm.FlagPowerUp
		}
		if node.drained {
			record.Flags |= slurm.FlagDrain
		}
		if node.down {
			record.State = slurm.StateDown
		}
		if job := w.jobOn(i); job != nil {
			record.State, record.AllocatedCPUs = slurm.StateMixed, 1
			load := slurm.Load{Running: 1, Job: int64(slices.Index(w.jobs, job) + 1), Unlimited: true}
			if w.counted {
				load.Job = 0
			}
			snapshot.Loads[record.Name] = load
		}
		snapshot.Nodes = append(snapshot.Nodes, record)
	}
	return snapshot
}

// plan makes a plan from the last snapshot, or a new one.
func (w *elasticModel) plan(fresh bool) plan.Plan {
	if fresh || w.mirrored == nil {
		w.now = w.now.Add(time.Millisecond)
		w.mirrored = w.read()
	}
	w.observeMode()
	s := &plan.Snapshot{Now: w.now, Set: w.set, Slurm: w.mirrored, JustRead: fresh, Answers: true,
		KubernetesNodes: map[string]plan.KubernetesNode{"m1": {}}}
	var names []string
	dynamic := 0
	for _, i := range slices.Sorted(maps.Keys(w.pods)) {
		s.Pods = append(s.Pods, *w.pods[i])
		if w.pods[i].Dynamic {
			dynamic++
		}
		names = append(names, w.pods[i].SlurmNode)
	}
	w.history.Observe(w.mirrored, names)
	s.DrainedSince = w.history.Since()
	next := plan.Next(s)
	if w.plans++; w.plans%elasticAlarmChecks == 0 {
		if missing := missingAlarm(s); missing != "" {
			w.violate("the plan waits without an alarm: it changes %s", missing)
		}
	}
	if sum := sumOf(next.Elastic.Causes) + dynamic; sum != next.Desired && !w.fixed {
		w.violate("%d Slurm nodes are up, of which %d have a cause", next.Desired, sum)
	}
	return next
}

// reconcile plans, and carries out the first writes of the plan.
func (w *elasticModel) reconcile(writes int) {
	next := w.plan(w.rand.IntN(3) == 0)
	if next.NeedsRefresh {
		next = w.plan(true)
	}
	for _, action := range next.Actions[:min(writes, len(next.Actions))] {
		if action.Kind == plan.RequestCapacity || action.Kind == plan.Withdraw {
			w.note("operator: %s %s: %s", action.Kind, action.Request.Name, action.Why)
			w.ask(action)
			continue
		}
		w.note("operator: %s %s: %s", action.Kind, action.SlurmNode, action.Why)
		w.carryOut(action)
	}
	w.mirrored = nil
}

// carryOut carries out an action, and checks that it is allowed.
func (w *elasticModel) carryOut(action plan.Action) {
	if action.Kind == plan.Prune {
		w.prune(action.SlurmNode)
		return
	}
	i := action.Pod.Ordinal
	node, job := w.nodes[i], w.jobOn(i)
	switch action.Kind {
	case plan.Create:
		w.createPod(action)
	case plan.Delete:
		if job != nil && job.running && node.pod == w.pods[i].UID {
			w.violate("pod %s is deleted with a job", action.Pod.Name)
		}
		w.terminate(i)
	case plan.ForcePowerDown, plan.PowerDown, plan.PowerUp, plan.Resume, plan.Drain, plan.Undrain, plan.ClearReason:
		w.request(action)
	case plan.MarkPod:
		w.pods[i].Mark = plan.Marked
	case plan.UnmarkPod:
		w.pods[i].Mark = plan.Unmarked
	case plan.Prune, plan.RequestCapacity, plan.Withdraw:
		w.violate("unexpected %s", action.Kind)
	}
}

// createPod creates a pod, and checks that it is needed.
func (w *elasticModel) createPod(action plan.Action) {
	i := action.Pod.Ordinal
	node := w.nodes[i]
	if (node.kind == isRecorded) == w.fixed {
		w.violate("a pod is created for %s, whose slurmd would not start", slotName(i))
	}
	if w.pods[i] != nil || node.power != isWaking && w.jobOn(i) == nil && !node.down && !w.fixed {
		w.violate("a pod is created for %s, which does not need one", action.SlurmNode)
		return
	}
	if !w.hasRoom(action) {
		w.violate("a pod is created for %s, for which there is no room", action.SlurmNode)
	}
	w.created++
	w.pods[i] = &plan.Pod{Name: slotName(i), UID: strconv.Itoa(w.created), SlurmNode: slotName(i), Ordinal: i,
		Revision: w.set.Revision, Created: w.now, Unscheduled: true, Named: true, Dynamic: w.fixed}
	if action.Request != nil {
		w.pods[i].Request = action.Request.Name
	}
}

// request carries out a request to Slurm.
func (w *elasticModel) request(action plan.Action) {
	i := action.Pod.Ordinal
	node, job := w.nodes[i], w.jobOn(i)
	if node.drainedByAdmin() && action.Kind != plan.Resume && action.Kind != plan.ClearReason {
		w.violate("%s of %s, which an administrator has drained", action.Kind, action.SlurmNode)
	}
	switch action.Kind { //nolint:exhaustive // the others are no requests
	case plan.ForcePowerDown:
		w.giveUp(i, action)
	case plan.PowerDown:
		if job != nil && node.pod != "" {
			w.violate("%s is powered down, although it has a job", action.SlurmNode)
		}
		if node.power == isUp {
			w.suspend(node)
		}
	case plan.PowerUp:
		if node.power != isOff {
			w.violate("%s is powered up, although it is up", action.SlurmNode)
		}
		node.wanted = true
	case plan.Resume:
		node.down = false
	case plan.Drain:
		if node.power == isWaking && job != nil {
			w.violate("%s is drained while it is powering up for a job", action.SlurmNode)
		}
		node.drained, node.reason, node.reasonAt = true, action.Why, w.now
	case plan.Undrain:
		node.drained, node.reason = false, ""
	case plan.ClearReason:
		node.reason = ""
	}
}

// giveUp powers a node down that is powering up, and checks that its job does not return to the queue because of
// another weight.
func (w *elasticModel) giveUp(i int, action plan.Action) {
	node, job := w.nodes[i], w.jobOn(i)
	if action.Cause == plan.Updating && job != nil && !w.fixed {
		w.violate("job %d is requeued because of another weight", slices.Index(w.jobs, job)+1)
	}
	if node.power != isWaking {
		w.violate("%s is forced down while it is up", action.SlurmNode)
	}
	w.requeue(i)
	w.suspend(node)
}
