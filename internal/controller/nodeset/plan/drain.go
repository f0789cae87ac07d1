package plan

import (
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// drain makes Slurm give no more jobs to nodes for which there is a cause, and lifts the drains of ours whose cause is gone.
// A drain of anybody else is left alone.
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
	if record == nil || pod.Terminating || record.DrainedByOthers() {
		return Action{}, false
	}
	cause, detail := p.cause(pod)
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

// remove deletes the pods that are to go and may, and those that have ended.
func (p *planner) remove() {
	for i := range p.Pods {
		pod := &p.Pods[i]
		cause, leaving := p.leaving[pod.Name]
		switch {
		case pod.Terminating:
			continue
		case !leaving && pod.Ended:
			cause = Ended
		case !leaving:
			continue
		}
		hold := p.Release(pod)
		if hold.Kind == NotHeld && cause == Updating {
			hold = p.canary(pod)
		}
		if hold.Kind == NotHeld {
			p.do(Action{Kind: Delete, Pod: pod, Node: pod.Node, Cause: cause, Why: removalReasons[cause], WithClaims: cause == ScaleIn})
			continue
		}
		p.Waits = append(p.Waits, Wait{Pod: pod, Cause: cause, Hold: hold})
		p.Proof = p.Proof || hold.Kind == Unproven
		if hold.Kind != Jobs {
			p.wakeAt(hold.Until)
		}
	}
}

var removalReasons = map[Cause]string{
	ScaleIn:  "it is one too many",
	Updating: "its revision is out of date",
	Deletion: "its NodeSet is being deleted",
	Ended:    "it has ended",
}

// prune removes the records of the set's nodes that have no pod, where that is asked for.
func (p *planner) prune() {
	if !p.Set.Prune || !p.Answers || p.Slurm == nil || len(p.Pods) < p.Desired {
		return // a pod that is missing comes back to its record
	}
	taken := make(map[string]bool, len(p.Pods))
	for i := range p.Pods {
		if p.Pods[i].Terminating {
			return // pods go by the hundred, and their records with one look at Slurm and one request
		}
		taken[p.Pods[i].Node] = true
	}
	for _, record := range p.Slurm.Nodes {
		if taken[record.Name] || record.DrainedByOthers() || !strings.Contains(record.Comment, p.Set.UID) {
			continue
		}
		if owner, err := slurm.ParseOwner(record.Comment); err != nil || owner.NodeSetUID != p.Set.UID {
			continue
		}
		vacancy := p.Slurm.Vacancy(record.Name, p.Now.Add(-patience))
		switch {
		case vacancy == slurm.Uncertain || !p.Fresh:
			p.Proof = true
		case vacancy == slurm.Drained, vacancy == slurm.Open && !record.Responding():
			p.do(Action{Kind: Prune, Node: record.Name, Cause: NoPod, Why: "it has no pod any more"})
		}
	}
}
