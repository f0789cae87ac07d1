package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// desired is how many pods there should be.
func (s *Snapshot) desired() int {
	switch {
	case s.Set.Deleting:
		return 0
	case !s.Set.DaemonSet:
		return s.Set.Replicas
	}
	wanted := 0
	for _, machine := range s.Machines {
		if machine.Wanted {
			wanted++
		}
	}
	return wanted
}

// scaleIn says which pods are too many.
func (p *planner) scaleIn() {
	var present []*Pod
	for i := range p.Pods {
		if pod := &p.Pods[i]; !pod.Terminating {
			present = append(present, pod)
		}
	}
	switch {
	case p.Set.Deleting:
		p.leave(Deletion, present...)
	case p.Set.DaemonSet:
		for _, pod := range present {
			if !p.Machines[pod.Machine].Wanted {
				p.leave(ScaleIn, pod)
			}
		}
	case len(present) > p.Set.Replicas:
		slices.SortStableFunc(present, p.goesFirst)
		p.leave(ScaleIn, present[:len(present)-p.Set.Replicas]...)
	}
}

func (p *planner) leave(cause Cause, pods ...*Pod) {
	for _, pod := range pods {
		p.leaving[pod.Name] = cause
	}
}

// goesFirst orders pods by who goes first at a scale-in: who does no work, who costs least, who is free, who was chosen before,
// who will be free soonest, and last who has the higher ordinal. A node that was chosen and still has jobs takes jobs again when
// another one is free to go.
func (p *planner) goesFirst(a, b *Pod) int {
	return cmp.Or(
		first(a.Ended, b.Ended),
		first(p.record(a) == nil, p.record(b) == nil),
		first(a.ReadySince.IsZero(), b.ReadySince.IsZero()),
		cmp.Compare(a.DeletionCost, b.DeletionCost),
		first(!p.busy(a), !p.busy(b)),
		first(p.drainedFor(ScaleIn, a), p.drainedFor(ScaleIn, b)),
		p.freeFirst(a, b),
		cmp.Compare(b.Ordinal, a.Ordinal),
	)
}

// freeFirst orders pods by who is free, or will be soonest.
func (p *planner) freeFirst(a, b *Pod) int {
	one, other := p.load(a), p.load(b)
	return cmp.Or(
		first(!p.busy(a), !p.busy(b)),
		first(!one.Unlimited, !other.Unlimited),
		one.Until.Compare(other.Until),
	)
}

// drainedFor tells whether a pod was chosen to go before, for a cause that needs no detail: its drain says so.
func (p *planner) drainedFor(cause Cause, pod *Pod) bool {
	record := p.record(pod)
	return record != nil && record.DrainedByUs() && record.Reason == drainReason(cause, "")
}

// first orders what is so before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// create makes the pods that are missing: of the lowest ordinals that are free, or on the machines that have none.
func (p *planner) create() {
	if p.Set.Deleting {
		return
	}
	if p.Set.DaemonSet {
		p.createOnMachines()
		return
	}
	taken := make(map[int]bool, len(p.Pods))
	for i := range p.Pods {
		taken[p.Pods[i].Ordinal] = true
	}
	ordinal := 0
	for range p.Set.Replicas - len(p.Pods) {
		for taken[ordinal] {
			ordinal++
		}
		p.do(Action{Kind: Create, Pod: &Pod{Ordinal: ordinal}, Cause: Missing, Why: "it is missing"})
		ordinal++
	}
}

func (p *planner) createOnMachines() {
	taken := make(map[string]bool, len(p.Pods))
	for i := range p.Pods {
		taken[p.Pods[i].Machine] = true
	}
	for _, name := range slices.SortedFunc(maps.Keys(p.Machines), strings.Compare) {
		if machine := p.Machines[name]; machine.Wanted && !taken[name] {
			p.do(Action{
				Kind: Create, Pod: &Pod{Ordinal: -1, Machine: name, Node: machine.Node}, Node: machine.Node, Cause: Missing, Why: "the Kubernetes node has none",
			})
		}
	}
}
