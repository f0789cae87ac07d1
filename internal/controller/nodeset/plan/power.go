package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/schedule"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// power asks Slurm to power the nodes of an elastic NodeSet up and down. Each request is based on a snapshot that was
// read for it, and never concerns a node that a user has closed.
func (p *planner) power() {
	if p.Set.Elastic == nil {
		return
	}
	p.Elastic = p.summarize()
	p.applySchedules()
	p.Elastic.Causes, p.Elastic.Jobs = p.causes()
	if !p.Answers || p.Slurm == nil {
		return
	}
	pods := p.podBySlot()
	p.groups = p.findGroups()
	p.indexRequests()
	p.giveUp(pods)
	p.closeFailed(pods)
	p.withdraw(pods)
	for _, slot := range p.Set.Elastic.Slots {
		if pods[slot.Ordinal] == nil && !p.closing[slot.SlurmNode] {
			p.settle(slot)
		}
	}
	if !p.Set.Deleting && !p.Set.Elastic.Ended {
		p.powerDownIdle(pods)
		p.powerUp()
	}
}

// applySchedules sets how many idle Slurm nodes should be up now, and asks for a plan when that may change.
func (p *planner) applySchedules() {
	scheduled, boundary := schedule.At(p.Set.Elastic.Schedules, p.Now)
	p.Elastic.Warm, p.Elastic.Scheduled = max(p.Set.Elastic.Warm, scheduled), scheduled > p.Set.Elastic.Warm
	p.wakeAt(boundary)
}

// request adds an action about a Slurm node, if the snapshot was read for this plan.
func (p *planner) request(kind Kind, slot Slot, cause Cause, why string) {
	if !p.allRead() {
		p.refreshAll()
		return
	}
	p.do(Action{Kind: kind, Pod: &Pod{Ordinal: slot.Ordinal, SlurmNode: slot.SlurmNode}, SlurmNode: slot.SlurmNode,
		Cause: cause, Why: why})
}

// summarize counts Slurm nodes.
func (p *planner) summarize() Summary {
	var summary Summary
	if p.Slurm == nil {
		return summary
	}
	pods := p.podBySlot()
	for _, slot := range p.Set.Elastic.Slots {
		record := p.slotRecord(slot)
		summary.Pending = summary.Pending || slot.Pending
		if record == nil {
			if !p.Set.Elastic.Ended {
				summary.Missing++
			}
			continue
		}
		if slot.Outdated && pods[slot.Ordinal] == nil && !p.Set.Elastic.Ended {
			summary.Outdated++
			summary.FirstOutdated = cmp.Or(summary.FirstOutdated, slot.SlurmNode)
		}
		if !record.Closed() {
			summary.Open++
		}
		switch {
		case record.PoweringUp():
			summary.Starting++
		case on(record):
			summary.Up++
		}
		if on(record) && p.slotBusy(record) {
			summary.Busy++
		}
		p.countFailed(record, &summary)
	}
	return summary
}

// countFailed adds a Slurm node to the summary if it could not be started.
func (p *planner) countFailed(record *slurm.Node, summary *Summary) {
	switch {
	case drainedFor(NoCapacity, record):
		summary.Unplaced++
	case drainedFor(NotStarted, record), record.TimedOut():
		summary.Failed++
	default:
		return
	}
	if retry := p.retryAt(record); summary.Retry.IsZero() || retry.Before(summary.Retry) {
		summary.Retry = retry
	}
}

// retryAt returns when a Slurm node that could not be started is opened again.
func (p *planner) retryAt(record *slurm.Node) time.Time {
	return p.Slurm.LocalTime(record.ReasonAt).Add(p.Set.Elastic.Backoff)
}

// giveUp gives up the groups whose Slurm nodes did not all register in time, as a whole: their job returns to the
// queue. Only Slurm nodes that are still powering up are forced; others of the job become idle. So do those that a user
// has closed meanwhile, because a power-down would open them. If Kubernetes has no room, the Slurm nodes that are
// powered down are closed too, so that Slurm uses no more than could be placed.
func (p *planner) giveUp(pods map[int]*Pod) {
	full := false
	for i := range p.groups {
		group := &p.groups[i]
		if p.awaitsJob(group) {
			continue
		}
		cause, why := p.failure(group, pods)
		if cause == "" {
			continue
		}
		for _, slot := range group.slots {
			if !p.slotRecord(slot).HeldByOthers() {
				p.request(ForcePowerDown, slot, cause, why)
			}
		}
		group.givenUp = true
		if group.hasJob() {
			p.givenUp[group.job] = true
		}
		full = full || cause == NoCapacity
	}
	if !full {
		return
	}
	for _, slot := range p.Set.Elastic.Slots {
		if record := p.slotRecord(slot); record != nil && record.PoweredOff() && !record.Closed() {
			p.closeSlot(slot, NoCapacity)
		}
	}
}

// Confirmed returns those of some actions that the plan for a later snapshot has too.
func Confirmed(actions []Action, later *Snapshot) []Action {
	next := Next(later)
	return slices.DeleteFunc(slices.Clone(actions), func(action Action) bool {
		return !slices.ContainsFunc(next.Actions, func(again Action) bool {
			return again.Kind == action.Kind && again.SlurmNode == action.SlurmNode && again.Cause == action.Cause
		})
	})
}

// progress returns when a group began to start, how many of its pods exist, and how many of these have no Kubernetes
// node yet. A pod from before that does not terminate has as much time as a new one.
func (g *group) progress(request *Request, pods map[int]*Pod) (began time.Time, existing, unplaced int) {
	if request != nil {
		began = request.Created
	}
	for _, slot := range g.slots {
		pod := pods[slot.Ordinal]
		if pod == nil {
			continue
		}
		start := pod.Created
		switch {
		case pod.Terminating:
			start = pod.Terminates
		case pod.Unscheduled:
			unplaced++
			existing++
		default:
			existing++
		}
		if began.IsZero() || start.Before(began) {
			began = start
		}
	}
	return began, existing, unplaced
}

// failure returns why a group is given up; an empty cause if it is not. Its pods have time from when the first of them
// was created, or room for them was requested.
func (p *planner) failure(group *group, pods map[int]*Pod) (cause Cause, why string) {
	request := p.requestOf(group)
	began, existing, unplaced := group.progress(request, pods)
	switch {
	case existing == 0 && p.Set.Deleting:
		return Deletion, "the NodeSet is being deleted"
	case existing == 0 && group.changesFirst():
		return Updating, "its record is about to change"
	case began.IsZero():
		return "", ""
	case request != nil && existing-unplaced < len(group.slots) && p.refused(request):
		return NoCapacity, fmt.Sprintf("%s has no room for the pods for %s", request.describe(), group.describe())
	}
	end := began.Add(p.Set.Elastic.Start)
	if p.Now.Before(end) {
		p.wakeAt(end)
		return "", ""
	}
	switch {
	case request != nil && existing < len(group.slots):
		return NoCapacity, fmt.Sprintf("%s led to no pods for %s within %s", request.describe(), group.describe(),
			p.Set.Elastic.Start)
	case unplaced > 0:
		return NoCapacity, fmt.Sprintf("%d of %d pods for %s could not be scheduled within %s", unplaced,
			len(group.slots), group.describe(), p.Set.Elastic.Start)
	}
	return NotStarted, fmt.Sprintf("the Slurm nodes for %s did not all register within %s", group.describe(),
		p.Set.Elastic.Start)
}

// closeFailed closes the Slurm nodes that were given up, while their pods, or the request for room, still say why.
func (p *planner) closeFailed(pods map[int]*Pod) {
	for _, slot := range p.Set.Elastic.Slots {
		record, pod := p.slotRecord(slot), pods[slot.Ordinal]
		if !p.mayClose(slot, record) || pod == nil && p.slotCause(slot) != NoCause { // settle closes it
			continue
		}
		late := false
		if pod != nil {
			end := pod.Created.Add(p.Set.Elastic.Start)
			p.wakeAt(end)
			late = !p.Now.Before(end)
		}
		switch unplaced := pod == nil || pod.Unscheduled; {
		case pod != nil && p.lingers(pod): // jobs would wait for its name
			p.closeSlot(slot, NotStarted)
		case unplaced && (late || slices.ContainsFunc(p.requests[slot.SlurmNode], p.failed)):
			p.closeSlot(slot, NoCapacity)
		case !unplaced && late && !pod.Registered:
			p.closeSlot(slot, NotStarted)
		}
	}
}

// mayClose reports whether a Slurm node is powered down, and open.
func (p *planner) mayClose(slot Slot, record *slurm.Node) bool {
	return record != nil && record.PoweredOff() && !record.Closed() && !p.Set.Deleting && !p.closing[slot.SlurmNode]
}

// closeSlot closes a Slurm node until a backoff is over. Nothing else is done with it in this plan.
func (p *planner) closeSlot(slot Slot, cause Cause) {
	p.closing[slot.SlurmNode] = true
	p.request(Drain, slot, cause, drainReason(cause, ""))
}

// settle opens and closes a Slurm node without a pod, and powers it down if it should not be up. One that is
// down because it lost its pod is closed for a new record, if a new pod would not match the present one.
func (p *planner) settle(slot Slot) {
	record := p.slotRecord(slot)
	if record == nil || slot.Pending || record.PoweringUp() || p.slotBusy(record) {
		return
	}
	if record.TimedOut() {
		p.settleTimedOut(slot, record)
		return
	}
	if record.HeldByOthers() && (!record.GaveUp() || !p.Set.Elastic.Ended && !slot.Mismatched) {
		return
	}
	cause := p.slotCause(slot)
	switch {
	case cause != NoCause:
		if why := drainReason(cause, ""); !record.Draining() || record.Reason != why {
			p.request(Drain, slot, cause, why)
		}
	case record.Draining() && p.backingOff(record):
		p.wakeAt(p.retryAt(record))
	case on(record): // it also lifts a drain of the operator
		p.request(PowerDown, slot, NoPod, "it has no pod")
	case record.Draining():
		p.request(Undrain, slot, p.lifted(record), "it may take jobs again")
	case slurm.IsOurReason(record.Reason):
		p.request(ClearReason, slot, NoCause, "its drain was lifted")
	}
}

// lifted returns why a drain is lifted.
func (p *planner) lifted(record *slurm.Node) Cause {
	if drainedFor(NoCapacity, record) || drainedFor(NotStarted, record) {
		return BackoffIsOver
	}
	return NoCause
}

// backingOff reports whether a Slurm node stays closed because it could not be started a while ago.
func (p *planner) backingOff(record *slurm.Node) bool {
	return (drainedFor(NoCapacity, record) || drainedFor(NotStarted, record)) && p.Now.Before(p.retryAt(record))
}

// settleTimedOut opens a Slurm node whose power-up slurmctld has given up.
func (p *planner) settleTimedOut(slot Slot, record *slurm.Node) {
	if retry := p.retryAt(record); p.Now.Before(retry) {
		p.wakeAt(retry)
		return
	}
	p.request(Resume, slot, BackoffIsOver, "slurmctld gave up its power-up; it may be tried again")
}

// slotCause returns why a Slurm node without a pod must take no jobs.
func (p *planner) slotCause(slot Slot) Cause {
	switch {
	case p.Set.Deleting:
		return Deletion
	case slot.Ordinal >= p.Set.Elastic.Max && !p.Set.Elastic.Ended:
		return ScaleIn
	case slot.Outdated:
		return Updating
	default:
		return NoCause
	}
}

// upAndIdle returns how many Slurm nodes are up or about to be, and how many of them have no jobs.
func (p *planner) upAndIdle() (up, idle int) {
	for _, slot := range p.Set.Elastic.Slots {
		record := p.slotRecord(slot)
		if record == nil || record.Closed() || record.Flags.Has(slurm.FlagPowerDown) ||
			!on(record) && !record.Flags.Has(slurm.FlagPowerUp) && !p.slotBusy(record) {
			continue
		}
		if up++; !p.slotBusy(record) {
			idle++
		}
	}
	return up, idle
}

// powerDownIdle powers Slurm nodes down that have been idle for long enough, those with the highest ordinals first. As
// many as the minimum stay up, and as many idle ones as should be warm.
func (p *planner) powerDownIdle(pods map[int]*Pod) {
	up, idle := p.upAndIdle()
	timeout := p.idleTimeout()
	excess := min(up-p.Set.Elastic.Min, idle-p.Elastic.Warm)
	for _, slot := range slices.Backward(p.Set.Elastic.Slots) {
		pod, record := pods[slot.Ordinal], p.slotRecord(slot)
		if excess <= 0 {
			return
		}
		if pod == nil || !p.mayPowerDown(pod, record) {
			continue
		}
		since := p.Slurm.LocalTime(record.LastBusy)
		if pod.ReadySince.After(since) {
			since = pod.ReadySince
		}
		if end := since.Add(timeout); p.Now.Before(end) {
			p.wakeAt(end)
			continue
		}
		p.request(PowerDown, slot, Idle, fmt.Sprintf("it has been idle for %s", timeout))
		excess--
	}
}

// backfillTime is three times how often Slurm's backfill scheduler runs by default.
const backfillTime = 90 * time.Second

// idleTimeout returns how long a Slurm node may be idle. Behind a job that waits for more of them, only the backfill
// scheduler starts others. If it found most nodes powered down each time, because they were idle since the time before,
// the first job would wait forever, and the others would start one by one.
func (p *planner) idleTimeout() time.Duration {
	if p.Slurm.Pending > 0 {
		return max(p.Set.Elastic.Idle, backfillTime)
	}
	return p.Set.Elastic.Idle
}

// mayPowerDown reports whether a pod's Slurm node is up, open, and without jobs. One that Slurm has planned for a job
// stays up.
func (p *planner) mayPowerDown(pod *Pod, record *slurm.Node) bool {
	_, leaving := p.leaving[pod.Name]
	return !leaving && !pod.Terminating && !pod.Cordoned && !pod.ReadySince.IsZero() &&
		on(record) && record.Responding() && !record.Closed() && !record.PoweringUp() && !p.slotBusy(record) &&
		!record.Flags.HasAny(slurm.FlagPowerDown|slurm.FlagPlanned|slurm.FlagMaintenance)
}

// powerUp powers Slurm nodes up until the minimum is up and enough idle ones are, those with the lowest ordinals first.
func (p *planner) powerUp() {
	up, idle := p.upAndIdle()
	minimum, warm := p.Set.Elastic.Min-up, p.Set.Elastic.Warm-idle
	missing := max(minimum, p.Elastic.Warm-idle)
	for _, slot := range p.Set.Elastic.Slots {
		record := p.slotRecord(slot)
		if missing <= 0 || slot.Ordinal >= p.Set.Elastic.Max {
			return
		}
		if record == nil || slot.Outdated || !record.PoweredOff() || record.Closed() || p.closing[slot.SlurmNode] ||
			record.Flags.HasAny(slurm.FlagPoweringDown|slurm.FlagPowerUp) {
			continue
		}
		cause, why := ForSchedule, "more idle Slurm nodes should be up at this time"
		switch {
		case minimum > 0:
			cause, why = ForMinimum, "more Slurm nodes should be up"
		case warm > 0:
			cause, why = ForWarm, "more idle Slurm nodes should be up"
		}
		p.request(PowerUp, slot, cause, why)
		minimum--
		warm--
		missing--
	}
}
