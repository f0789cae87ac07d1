package plan

import (
	"cmp"
	"fmt"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// update chooses the pods of an older revision that are replaced now.
//
// All unavailable pods use up the same budget: those that are missing, failing, or drained for any reason. The rest
// goes to pods that do not work, then to idle ones, then to those that are idle soonest. A Slurm node that was drained
// before and still has jobs is undrained when another one can be replaced at once, or if its jobs have no time limit
// and those of another one do, so that long jobs do not hold up the rollout. Never are more Slurm nodes drained for an
// update than may be unavailable: a drain lasts longer than a short outage, such as a restart of slurmctld.
func (p *planner) update() {
	if p.Outdated == 0 || !p.Set.Replaces() || p.Set.Deleting {
		return
	}
	known := p.Answers && p.Slurm != nil
	if known {
		var broken bool
		if p.Stopped, broken = p.brokenRevision(); broken {
			return
		}
	}
	candidates, budget := p.candidates(known)
	p.order(candidates, Updating, updatedFirst)
	p.leave(Updating, candidates[:min(budget, len(candidates))]...)
}

// candidates returns the pods to choose from, and how many of them may be chosen. Pods without a choice it decides
// itself.
func (p *planner) candidates(known bool) (candidates []*Pod, budget int) {
	var drained []*Pod
	missing := max(p.Desired-len(p.Pods), 0)
	p.trying = missing
	budget = p.Set.Update.MaxUnavailable - missing - p.recordless()
	for i := range p.Pods {
		pod := &p.Pods[i]
		_, leaving := p.leaving[pod.Name]
		switch {
		case pod.Terminating:
			if !p.lingers(pod) {
				p.trying++ // its replacement has the new revision
			}
			budget--
		case leaving:
		case p.poweredOff(pod): // it is deleted, and not replaced
		case p.upToDate(pod):
			p.proven = p.proven || p.up(pod) // even if it is drained
			p.trying++
			if !p.available(pod) {
				budget--
			}
		case pod.Cordoned: // a user may be at work in it, and the annotation would be lost
			p.Waits = append(p.Waits, Wait{
				Pod: pod, Cause: Updating, Hold: Hold{Why: "it is cordoned by its annotation", Kind: Kept},
			})
			budget--
		case known && p.drainable(pod):
			candidates = append(candidates, pod)
			if p.drainedFor(Updating, pod) {
				drained = append(drained, pod)
			}
		case known || pod.Unscheduled:
			p.leave(Updating, pod)
			budget--
		}
	}
	if budget < len(drained) {
		// Pods that become unavailable meanwhile, as all do briefly when slurmctld restarts, lift no drains and add
		// none.
		return drained, len(drained)
	}
	return candidates, budget
}

// drainable reports whether the operator may drain a pod's Slurm node: no user has closed it on purpose. A Slurm node
// that is down gets no drain, and counts against the budget all the same.
func (p *planner) drainable(pod *Pod) bool {
	record := p.record(pod)
	return record != nil && (!record.HeldByOthers() || !record.Draining() && !record.Flags.Has(slurm.FlagFail))
}

// updatedFirst orders pods by which is replaced first: those that do not work, then those that are idle, then those
// whose jobs have time limits; among equals those chosen before, and then those that are idle soonest. One that was
// chosen before and does not work keeps its place: its drain cannot be lifted now, and draining another one instead
// would exceed the budget.
func updatedFirst(a, b *candidate) int {
	stuck := func(pod *candidate) bool { return !pod.up && pod.chosen }
	return cmp.Or(
		first(!a.up, !b.up),
		first(stuck(a), stuck(b)),
		first(!a.busy, !b.busy),
		first(!a.load.Unlimited, !b.load.Unlimited),
		first(a.chosen, b.chosen),
		idleFirst(a, b),
	)
}

// brokenRevision returns why no more pods that work get the current revision, and whether none gets it: it failed and
// has not worked on any pod yet, or as many pods fail with it as may be unavailable. As many may also not terminate.
func (p *planner) brokenRevision() (why string, broken bool) {
	failed, lingering, works := 0, 0, false
	var example, remnant *Pod
	for i := range p.Pods {
		pod := &p.Pods[i]
		if p.lingers(pod) {
			lingering, remnant = lingering+1, cmp.Or(remnant, pod)
		}
		if pod.Terminating || pod.Revision != p.Set.Revision || p.poweredOff(pod) {
			continue
		}
		works = works || p.up(pod)
		if !p.overdue(pod) {
			p.wakeAt(p.began(pod).Add(p.Set.Registration))
			continue
		}
		if failed++; example == nil {
			example = pod
		}
	}
	switch most := p.Set.Update.MaxUnavailable; {
	case failed > 0 && (!works || failed+lingering >= most):
	case lingering >= most:
		return fmt.Sprintf("%d pods do not terminate, such as %s, and at most %d may be unavailable: the kubelet of "+
			"Kubernetes node %s does not confirm it, or a finalizer keeps the pod; repair that node, or delete its Node "+
			"object if it is shut down", lingering, remnant.Name, most, remnant.KubernetesNode), false
	default:
		return "", false
	}
	problem := example.Failing
	if problem == "" {
		problem = "its slurmd is not ready and registered with Slurm"
	}
	return fmt.Sprintf("%d of %d pods of the new revision do not come up, such as %s: %s; correct the spec, or restore "+
		"the previous one", failed, p.Updated, example.Name, problem), true
}

// lingers reports whether a pod should have terminated and did not: with a dead kubelet that may take for ever.
func (p *planner) lingers(pod *Pod) bool {
	if !pod.Terminating || pod.Terminates.IsZero() {
		return false
	}
	end := pod.Terminates.Add(terminationDelay)
	p.wakeAt(end)
	return !p.Now.Before(end)
}

// terminationDelay is how long a kubelet may take to confirm that a pod has terminated.
const terminationDelay = time.Minute

// canary holds working pods, drained or not, while another one tries a new revision that has not worked on any pod yet.
func (p *planner) canary(pod *Pod) Hold {
	if p.Set.isElastic() && pod.Dynamic { // no other pod takes its place before a job needs it
		return Hold{}
	}
	if pod.ReadySince.IsZero() || p.proven || p.trying == 0 {
		p.trying++
		return Hold{}
	}
	return Hold{Why: "the new revision is tried on another pod first", Kind: Canary}
}
