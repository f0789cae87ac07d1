package plan

import (
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// Protected reports whether the eviction of a pod must be refused, and whether that is known at all.
//
// It fails closed: every pod is protected from its creation on, because Slurm may schedule a job on it at any time,
// before the pod could be patched. Protection ends when Slurm shows the node closed to jobs and empty, or powered down,
// or when the deletion rule releases a pod that Slurm does not know. It is restored before the operator lifts a drain.
//
// A pod whose slurmd never ran stays protected: slurmd may start, register and get a job before the pod could be
// patched. That does not hold up evictions, because Kubernetes evicts pending pods whatever PodDisruptionBudgets say.
// Nor does a record count that was read before the pod was created: it may be that of an earlier pod, deleted since.
func (s *Snapshot) Protected(pod *Pod) (protected, known bool) {
	switch {
	case s.Set.Waived || pod.Exited:
		return false, true
	case !s.Answers || s.Slurm == nil:
		return true, false
	case s.load(pod).Jobs() > 0:
		return true, true
	}
	if record := s.record(pod); record != nil {
		return !record.Drained() && !record.PoweredOff() || s.precedes(pod), true
	}
	if s.vacancy(pod) != slurm.Absent || !pod.EverRan {
		return true, true
	}
	hold, held := s.absent(pod)
	return held && hold.Kind != NotHeld, true
}

// precedes reports whether the record of a pod's Slurm node may have been read before the pod was created, which
// Kubernetes rounds down to seconds.
func (s *Snapshot) precedes(pod *Pod) bool {
	return s.Slurm.NodeAsOf(pod.SlurmNode).Before(pod.Created.Add(time.Second))
}
