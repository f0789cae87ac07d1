package plan

import (
	"maps"
	"slices"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// drain drains Slurm nodes for which there is a cause, and lifts the operator's drains whose cause is gone. A Slurm
// node that a user or Slurm itself has closed is left alone, in whichever state. All of this happens together or not at
// all: if one drain replaced another that is lifted later, more Slurm nodes than allowed would be drained in between.
func (p *planner) drain() {
	if !p.Answers || p.Slurm == nil {
		return
	}
	var actions []Action
	current := true
	for i := range p.Pods {
		if action, needed := p.drainOf(&p.Pods[i]); needed {
			actions = append(actions, action)
			current = current && p.justRead(action.SlurmNode)
		}
	}
	for _, action := range actions {
		if !current { // others may have drained one of the nodes since
			p.refresh(action.SlurmNode)
			continue
		}
		p.do(action)
	}
}

// drainOf returns the action for the drain of a pod's Slurm node, if one is needed.
func (p *planner) drainOf(pod *Pod) (Action, bool) {
	record := p.record(pod)
	if record == nil || pod.Terminating || record.HeldByOthers() {
		return Action{}, false
	}
	if p.poweredOff(pod) { // no job starts there, and its pod is deleted
		return Action{}, false
	}
	if record.PoweringUp() && p.slotBusy(record) { // a drain would requeue its job, which has not started yet
		return Action{}, false
	}
	cause, detail := p.cause(pod)
	if cause == NoCause && !record.Draining() {
		// 24.11 keeps the reason when a user lifts the operator's drain, and shows it again when Slurm itself drains
		// the node.
		return Action{Kind: ClearReason, Pod: pod, SlurmNode: pod.SlurmNode, Cause: NoCause,
			Why: "its drain was lifted"}, slurm.IsOurReason(record.Reason)
	}
	if cause == NoCause {
		up := !pod.ReadySince.IsZero() && record.Responding() && !p.hostGone(pod, record)
		return Action{Kind: Undrain, Pod: pod, SlurmNode: pod.SlurmNode, Cause: NoCause,
			Why: "it may take jobs again"}, record.DrainedByUs() && up
	}
	why := drainReason(cause, detail)
	return Action{Kind: Drain, Pod: pod, SlurmNode: pod.SlurmNode, Cause: cause, Why: why}, !record.Draining() ||
		record.Reason != why
}

// hostGone reports whether the Kubernetes node that a pod's Slurm node was drained for has no object any more. A Node
// that is removed was cordoned before, and Kubernetes removes its pods up to a minute later, jobs included. If it
// registers again, that is an event.
func (p *planner) hostGone(pod *Pod, record *slurm.Node) bool {
	_, known := p.KubernetesNodes[pod.KubernetesNode]
	cause, _ := CauseOf(record.Reason)
	return !known && pod.KubernetesNode != "" && cause == FromKubernetesNode
}

// cause returns why a pod's Slurm node must take no jobs.
func (p *planner) cause(pod *Pod) (cause Cause, detail string) {
	if cause, leaving := p.leaving[pod.Name]; leaving {
		return cause, ""
	}
	if pod.Cordoned {
		return PodCordon, ""
	}
	if why := p.KubernetesNodes[pod.KubernetesNode].Drain; why != "" {
		return FromKubernetesNode, why
	}
	return NoCause, ""
}

// drainReason returns the reason that Slurm shows for a drain. It must not change while the cause stays.
func drainReason(cause Cause, detail string) string {
	if fixed, ok := drainReasons[cause]; ok {
		detail = fixed
	}
	return slurm.OurReason(detail)
}

// CauseOf returns the cause of a drain that the operator has set, by its reason, and false for all other reasons.
func CauseOf(reason string) (Cause, bool) {
	if !slurm.IsOurReason(reason) {
		return NoCause, false
	}
	for cause := range drainReasons {
		if drainReason(cause, "") == reason {
			return cause, true
		}
	}
	return FromKubernetesNode, true
}

// DrainCauses returns the causes of drains that the operator sets.
func DrainCauses() []Cause {
	return append(slices.Sorted(maps.Keys(drainReasons)), FromKubernetesNode)
}

var drainReasons = map[Cause]string{
	ScaleIn:   "scale-in",
	Updating:  "update",
	Deletion:  "NodeSet is being deleted",
	PodCordon: "pod is cordoned",
	// Those of Slurm nodes of elastic NodeSets, until a backoff is over.
	NoCapacity: "no capacity in Kubernetes",
	NotStarted: "its pod did not start in time",
}
