package plan

import (
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A Protection says whether the eviction of a pod must be refused.
type Protection uint8

// The protections.
const (
	// UnknownProtection: Slurm does not answer, or its last poll proves nothing about jobs. What the pod shows may be
	// right.
	UnknownProtection Protection = iota
	// Protected: evictions must be refused.
	Protected
	// Evictable: evictions may be allowed.
	Evictable
)

// protect decides which pods are protected.
//
// It fails closed: every pod is protected from its creation on, because Slurm may schedule a job on it at any time,
// before the pod could be patched. Protection ends when Slurm shows the node closed to jobs and empty, or powered down,
// or when the deletion rule releases a pod that Slurm does not know. It is restored before the operator lifts a drain.
//
// Protection that only a later moment or a newer read of Slurm can end asks for these: no event reports a list of Slurm
// nodes that is as the last one was.
func (p *planner) protect() {
	opened := map[string]bool{}
	for _, action := range p.Of(Undrain) {
		opened[action.SlurmNode] = true
	}
	p.Protections = make([]Protection, len(p.Pods))
	for i := range p.Pods {
		switch pod := &p.Pods[i]; {
		case opened[pod.SlurmNode] || pod.Terminating:
			p.Protections[i] = Protected
		default:
			p.Protections[i] = p.protection(pod)
		}
	}
}

func (p *planner) protection(pod *Pod) Protection {
	if p.Set.Waived || pod.Exited {
		return Evictable
	}
	if !p.Answers || p.Slurm == nil {
		return UnknownProtection
	}
	record := p.record(pod)
	switch {
	case p.load(pod).Jobs() > 0:
		return Protected
	case record == nil:
		return p.protectionWithoutRecord(pod)
	case !record.Drained() && !record.PoweredOff(), !pod.Identified(record):
		return Protected
	}
	// The record may be that of an earlier pod, deleted since, if it was read before the pod was created, which
	// Kubernetes rounds down to seconds.
	created := pod.Created.Add(time.Second)
	switch {
	case !p.Slurm.NodeAsOf(pod.SlurmNode).Before(created):
		return Evictable
	case p.Now.Before(created):
		p.wakeAt(created)
	default:
		p.refresh(pod.SlurmNode)
	}
	return Protected
}

// protectionWithoutRecord is that of a pod whose node Slurm does not have: the pod is evictable when a read of Slurm,
// after the time in which its slurmd should have registered, has shown that. A later registration is an event.
//
// A pod whose slurmd never ran stays protected: slurmd may start, register and get a job before the pod could be
// patched. That does not hold up evictions, because Kubernetes evicts pending pods whatever PodDisruptionBudgets say.
func (p *planner) protectionWithoutRecord(pod *Pod) Protection {
	if !pod.EverRan || !pod.Identified(nil) {
		return Protected
	}
	after := p.registersUntil(pod)
	if p.Now.Before(after) {
		p.wakeAt(after)
		return Protected
	}
	since, seen := p.DrainedSince[pod.SlurmNode]
	if since.After(after) {
		after = since
	}
	switch {
	case seen && p.Slurm.Vacancy(pod.SlurmNode, after) == slurm.Absent:
		return Evictable
	case p.Slurm.Unplaced > 0 && p.Slurm.NodeAsOf(pod.SlurmNode).After(after): // a job may be cleaned up there
		p.wakeAt(p.Now.Add(maxSnapshotAge))
	case p.Slurm.JobsAsOf.IsZero():
		p.readJobs(pod)
		return UnknownProtection
	default:
		p.refresh(pod.SlurmNode)
	}
	return Protected
}

// readJobs asks for a read of Slurm after a poll that proves nothing about jobs, because there are too many to list.
// Only a read that was requested does, and the next poll does not again: a pod that is evictable since needs no other.
func (p *planner) readJobs(pod *Pod) {
	switch {
	case pod.Unprotected:
	case p.allRead(): // Slurm is too slow for a proof
		p.wakeAt(p.Now.Add(unlocatedPause))
	default:
		p.refresh(pod.SlurmNode)
	}
}
