package plan

import (
	"cmp"
	"slices"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// desired is how many pods there should be.
func (s *Snapshot) desired() int {
	switch {
	case s.Set.Deleting:
		return 0
	case !s.Set.DaemonSet:
		return s.Set.Replicas
	}
	wanted := map[string]bool{}
	for name, machine := range s.Machines {
		if machine.Wanted {
			wanted[name] = true
		}
	}
	for i := range s.Pods {
		if s.stays(&s.Pods[i]) {
			wanted[s.Pods[i].Machine] = true
		}
	}
	return len(wanted)
}

// stays reports whether a pod in DaemonSet mode may stay on its Kubernetes node. A Node object that does not exist may be about to
// register again; if it does not, Kubernetes removes the pod.
func (s *Snapshot) stays(pod *Pod) bool {
	machine, known := s.Machines[pod.Machine]
	return !known || machine.Wanted || machine.Stays
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
			if !p.stays(pod) {
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

// drainedFor reports whether a pod was chosen to be removed before, for a cause that needs no detail: its drain says so.
func (p *planner) drainedFor(cause Cause, pod *Pod) bool {
	record := p.record(pod)
	return record != nil && drainedFor(cause, record)
}

// drainedFor reports whether a node is drained by us for a cause that needs no detail.
func drainedFor(cause Cause, record *slurm.Node) bool {
	return record.DrainedByUs() && record.Reason == drainReason(cause, "")
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
