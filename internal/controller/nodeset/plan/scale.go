package plan

import (
	"cmp"
	"slices"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// desired returns how many pods there should be.
func (s *Snapshot) desired() int {
	switch {
	case s.Set.Deleting:
		return 0
	case s.Set.isElastic():
		return s.wantedSlots()
	case !s.Set.DaemonSet:
		return s.Set.Replicas
	}
	wanted := map[string]bool{}
	for name, node := range s.KubernetesNodes {
		if node.Wanted {
			wanted[name] = true
		}
	}
	for i := range s.Pods {
		if s.stays(&s.Pods[i]) {
			wanted[s.Pods[i].KubernetesNode] = true
		}
	}
	return len(wanted)
}

// stays reports whether a pod in DaemonSet mode may stay on its Kubernetes node. A Node object that does not exist may
// be about to register again; if it does not, Kubernetes removes the pod.
func (s *Snapshot) stays(pod *Pod) bool {
	node, known := s.KubernetesNodes[pod.KubernetesNode]
	return !known || node.Wanted || node.Stays
}

// scaleIn chooses the pods in excess.
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
	case p.Set.isElastic():
		for _, pod := range present {
			if pod.Ordinal >= p.Set.Elastic.Max {
				p.leave(ScaleIn, pod)
			}
		}
	case len(present) > p.Set.Replicas:
		p.order(present, ScaleIn, scaledInFirst)
		p.leave(ScaleIn, present[:len(present)-p.Set.Replicas]...)
	}
}

func (p *planner) leave(cause Cause, pods ...*Pod) {
	for _, pod := range pods {
		p.leaving[pod.Name] = cause
	}
}

// scaledInFirst orders pods by which is scaled in first: those that do not work, then by deletion cost, idle ones,
// those chosen before, those that are idle soonest, and last by descending ordinal. A Slurm node that was chosen and
// still has jobs is undrained when another one becomes idle.
func scaledInFirst(a, b *candidate) int {
	return cmp.Or(
		first(a.Exited, b.Exited),
		first(!a.recorded, !b.recorded),
		first(a.ReadySince.IsZero(), b.ReadySince.IsZero()),
		cmp.Compare(a.DeletionCost, b.DeletionCost),
		first(!a.busy, !b.busy),
		first(a.chosen, b.chosen),
		idleFirst(a, b),
		cmp.Compare(b.Ordinal, a.Ordinal),
	)
}

// idleFirst orders pods by which is idle, or will be soonest.
func idleFirst(a, b *candidate) int {
	return cmp.Or(
		first(!a.busy, !b.busy),
		first(!a.load.Unlimited, !b.load.Unlimited),
		a.load.Until.Compare(b.load.Until),
	)
}

// A candidate is a pod with what decides whether it is scaled in or updated first. Sorting compares each pod many
// times, so this is computed once.
type candidate struct {
	*Pod
	recorded, up, busy bool
	// chosen reports whether it was chosen before.
	chosen bool
	load   slurm.Load
}

// order sorts pods that may leave for a cause.
func (p *planner) order(pods []*Pod, cause Cause, compare func(a, b *candidate) int) {
	candidates := make([]*candidate, len(pods))
	for i, pod := range pods {
		candidates[i] = &candidate{
			Pod: pod, recorded: p.record(pod) != nil, up: p.up(pod), busy: p.busy(pod), chosen: p.drainedFor(cause, pod),
			load: p.load(pod),
		}
	}
	slices.SortStableFunc(candidates, compare)
	for i := range candidates {
		pods[i] = candidates[i].Pod
	}
}

// drainedFor reports whether a pod was chosen before, for a cause that needs no detail: its drain says so.
func (p *planner) drainedFor(cause Cause, pod *Pod) bool {
	record := p.record(pod)
	return record != nil && drainedFor(cause, record)
}

// drainedFor reports whether the operator drained a Slurm node for a cause that needs no detail.
func drainedFor(cause Cause, record *slurm.Node) bool {
	return record.DrainedByUs() && record.Reason == drainReason(cause, "")
}

// first orders true before false.
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
