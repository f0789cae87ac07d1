package plan

import (
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// drain makes Slurm give no more jobs to nodes for which there is a cause, and lifts the drains of ours whose cause is gone.
// A node that a person or Slurm itself has closed is left alone, whatever the state is called.
func (p *planner) drain() {
	if !p.Answers || p.Slurm == nil {
		return
	}
	for i := range p.Pods {
		pod := &p.Pods[i]
		action, needed := p.drainOf(pod)
		switch {
		case !needed:
		case !p.Fresh: // somebody may have drained the node since
			p.Proof = true
		default:
			p.do(action)
		}
	}
}

// drainOf is what is to be done about the drain of a pod's node, if anything.
func (p *planner) drainOf(pod *Pod) (Action, bool) {
	record := p.record(pod)
	if record == nil || pod.Terminating || record.HeldByOthers() {
		return Action{}, false
	}
	cause, detail := p.cause(pod)
	if cause == NoCause && !record.Draining() {
		// 24.11 keeps it when somebody else lifts our drain, and shows it again when Slurm itself drains the node.
		return Action{Kind: ClearReason, Pod: pod, Node: pod.Node, Cause: NoCause, Why: "its drain was lifted"}, slurm.IsOurReason(record.Reason)
	}
	if cause == NoCause {
		up := !pod.ReadySince.IsZero() && record.Responding()
		return Action{Kind: Undrain, Pod: pod, Node: pod.Node, Cause: NoCause, Why: "it may take jobs again"}, record.DrainedByUs() && up
	}
	why := drainReason(cause, detail)
	return Action{Kind: Drain, Pod: pod, Node: pod.Node, Cause: cause, Why: why}, !record.Draining() || record.Reason != why
}

// cause is why a pod's node is to take no jobs.
func (p *planner) cause(pod *Pod) (cause Cause, detail string) {
	if cause, leaving := p.leaving[pod.Name]; leaving {
		return cause, ""
	}
	if pod.Cordoned {
		return PodCordon, ""
	}
	if why := p.Machines[pod.Machine].Drain; why != "" {
		return Machinery, why
	}
	return NoCause, ""
}

// drainReason is what Slurm shows as the reason of a drain. It says nothing that changes while the cause stays.
func drainReason(cause Cause, detail string) string {
	if fixed, ok := drainReasons[cause]; ok {
		detail = fixed
	}
	return slurm.OurReason(detail)
}

var drainReasons = map[Cause]string{
	ScaleIn:   "scale-in",
	Updating:  "update",
	Deletion:  "NodeSet is being deleted",
	PodCordon: "pod is cordoned",
}
