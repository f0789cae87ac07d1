package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// update says which pods of an older revision are to be replaced now.
//
// Whatever makes a pod unavailable uses up the same budget: pods that are missing, broken, or drained by whomever. What is left of
// it goes to pods that do not work, then to those that are free, then to those that will be free soonest. A node that was
// drained before and still has jobs takes jobs again when another one is free to be replaced: so long jobs hold up nobody.
// Never are more nodes drained for an update than may be unavailable, because a drain outlasts what made a pod unavailable,
// which may be over in a moment, as when slurmctld restarts.
func (p *planner) update() {
	if p.Outdated == 0 || !p.Set.Replaces() || p.Set.Deleting {
		return
	}
	known := p.Answers && p.Slurm != nil
	if known {
		if p.Stopped = p.brokenRevision(); p.Stopped != "" {
			return
		}
	}
	candidates, budget := p.takeStock(known)
	slices.SortStableFunc(candidates, p.updatedFirst)
	p.leave(Updating, candidates[:min(budget, len(candidates))]...)
}

// takeStock finds the pods among which there is a choice, and how many of them may be chosen. Where there is none, it decides.
func (p *planner) takeStock(known bool) (candidates []*Pod, budget int) {
	var drained []*Pod
	missing := max(p.Desired-len(p.Pods), 0)
	p.trying = missing
	budget = p.Set.Update.MaxUnavailable - missing
	for i := range p.Pods {
		pod := &p.Pods[i]
		_, leaving := p.leaving[pod.Name]
		switch {
		case pod.Terminating:
			p.trying++ // what replaces it has the new revision
			budget--
		case leaving:
		case pod.Revision == p.Set.Revision:
			p.proven = p.proven || p.up(pod) // whatever drains it
			p.trying++
			if !p.available(pod) {
				budget--
			}
		case pod.Cordoned: // a person may be at work in it, and their wish would go with it
			p.Waits = append(p.Waits, Wait{Pod: pod, Cause: Updating, Hold: Hold{Why: "a person has cordoned it", Kind: Kept}})
			budget--
		case known && p.drainable(pod):
			candidates = append(candidates, pod)
			if p.drainedFor(Updating, pod) {
				drained = append(drained, pod)
			}
		case known || pod.Unplaced:
			p.leave(Updating, pod)
			budget--
		}
	}
	if budget < len(drained) {
		// What becomes unavailable meanwhile, as all nodes do for a moment when slurmctld restarts, lifts no drains, and adds none.
		return drained, len(drained)
	}
	return candidates, budget
}

// drainable reports whether it is for us to say when a pod is replaced: nobody has closed its node on purpose. A node that is down
// gets no drain of ours, and waits for its share of the budget all the same.
func (p *planner) drainable(pod *Pod) bool {
	record := p.record(pod)
	return record != nil && (!record.HeldByOthers() || !record.Draining() && !record.Flags.Has(slurm.FlagFail))
}

// updatedFirst orders pods by who is replaced first: who does not work, who is free or will be soonest, and of two who are alike
// the one that was chosen before. One that was chosen before and does not work keeps its place: its drain cannot be lifted now, and
// to drain another one for it would be one too many.
func (p *planner) updatedFirst(a, b *Pod) int {
	stuck := func(pod *Pod) bool { return !p.up(pod) && p.drainedFor(Updating, pod) }
	return cmp.Or(
		first(!p.up(a), !p.up(b)),
		first(stuck(a), stuck(b)),
		first(!p.busy(a), !p.busy(b)),
		first(p.drainedFor(Updating, a), p.drainedFor(Updating, b)),
		p.freeFirst(a, b),
	)
}

// brokenRevision tells why the current revision is not to be given to more pods: it has not worked anywhere yet and has
// failed, or as many pods fail with it as may be unavailable.
func (p *planner) brokenRevision() string {
	failed, works := 0, false
	var example *Pod
	for i := range p.Pods {
		pod := &p.Pods[i]
		if pod.Terminating || pod.Revision != p.Set.Revision {
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
	if failed == 0 || (works && failed < p.Set.Update.MaxUnavailable) {
		return ""
	}
	problem := example.Failing
	if problem == "" {
		problem = "its slurmd is not ready and registered with Slurm"
	}
	return fmt.Sprintf("%d of %d pods of the new revision do not come up, such as %s: %s", failed, p.Updated, example.Name, problem)
}

// canary holds pods that work, or would if they were not drained, while another one tries the new revision and it has not
// worked anywhere yet.
func (p *planner) canary(pod *Pod) Hold {
	if pod.ReadySince.IsZero() || p.proven || p.trying == 0 {
		p.trying++
		return Hold{}
	}
	return Hold{Why: "the new revision is tried on another pod first", Kind: Canary}
}
