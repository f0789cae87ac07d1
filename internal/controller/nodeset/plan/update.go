package plan

import (
	"fmt"
	"slices"
)

// update says which pods of an older revision are to be replaced now.
//
// Whatever makes a pod unavailable uses up the same budget: pods that are missing, broken, or drained by whomever. Pods that are
// unavailable anyway are replaced at no cost, so those that were chosen before stay chosen. But a drain outlasts what made a
// pod unavailable, which may be over in a moment, as when slurmctld restarts: never are more nodes drained for an update
// than may be unavailable.
func (p *planner) update() {
	if p.Outdated == 0 || !p.Set.Update.Replace || p.Set.Deleting {
		return
	}
	known := p.Answers && p.Slurm != nil
	if known {
		if p.Stopped = p.brokenRevision(); p.Stopped != "" {
			return
		}
	}
	var working, shaky []*Pod
	unavailable, drained := p.Desired, max(p.Desired-len(p.Pods), 0)
	for i := range p.Pods {
		pod := &p.Pods[i]
		if p.drainedFor(Updating, pod) {
			drained++
		}
		if pod.Terminating {
			p.trying++ // what replaces it has the new revision
			continue
		}
		if _, leaving := p.leaving[pod.Name]; leaving {
			continue
		}
		available := p.available(pod)
		if available {
			unavailable--
		}
		switch {
		case pod.Revision == p.Set.Revision:
			p.proven = p.proven || p.up(pod) // whatever drains it
			p.trying++
		case pod.Cordoned: // a person may be at work in it, and their wish would go with it
			p.Waits = append(p.Waits, Wait{Pod: pod, Cause: Updating, Hold: Hold{Why: "a person has cordoned it", Kind: Kept}})
		case available && known:
			working = append(working, pod)
		case known && p.mayReturn(pod):
			shaky = append(shaky, pod)
		case known || pod.Unplaced:
			p.leave(Updating, pod)
		}
	}
	p.trying += max(p.Desired-len(p.Pods), 0)
	p.leave(Updating, shaky[:min(max(p.Set.Update.MaxUnavailable-drained, 0), len(shaky))]...)
	budget := max(p.Set.Update.MaxUnavailable-unavailable, 0)
	slices.SortStableFunc(working, p.freeFirst)
	p.leave(Updating, working[:min(budget, len(working))]...)
}

// mayReturn tells whether a pod that is unavailable may be available in a moment, if it is not drained for the update.
func (p *planner) mayReturn(pod *Pod) bool {
	record := p.record(pod)
	return record != nil && !record.DrainedByOthers() && !p.drainedFor(Updating, pod)
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
