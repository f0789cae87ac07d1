package plan

import (
	"fmt"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// maxAbsenceAge is how long after a read of Slurm a node still counts as down, or as absent if its pod's slurmd is not
// reported as running: slurmd may run nevertheless, register, and get a job. A poll of many Slurm nodes or jobs takes
// seconds, so this is counted from its end: otherwise no read would ever be recent enough.
const maxAbsenceAge = 2 * time.Second

// maxSnapshotAge is how old a snapshot of Slurm may be to prove anything. Between the snapshot and the deletion a drain
// may be lifted and a job may start: no rule can close that gap, a low limit keeps it small.
const maxSnapshotAge = 15 * time.Second

// A Hold is why a pod must not be deleted; the zero Hold is none.
type Hold struct {
	// Why is for messages; empty if the pod may be deleted.
	Why string
	// Kind classifies the hold.
	Kind HoldKind
	// Until is when the last job ends at the latest, if known, or when the hold expires.
	Until time.Time
}

// A HoldKind classifies holds.
type HoldKind uint8

// The kinds of holds.
const (
	// NotHeld: the pod may be deleted.
	NotHeld HoldKind = iota
	// Unreachable: Slurm does not answer.
	Unreachable
	// Unproven: the snapshot of Slurm proves nothing; a newer one may.
	Unproven
	// Jobs: the Slurm node has jobs.
	Jobs
	// Undrained: a job could start at any time.
	Undrained
	// Registering: slurmd may register, and get a job, at any time.
	Registering
	// Canary: the new revision must prove itself on another pod first.
	Canary
	// ExitedEarly: the pod exited right after its creation; another one would too.
	ExitedEarly
	// Kept: a user has cordoned it.
	Kept
	// Unlocated: one of the jobs that are being cleaned up on unknown Slurm nodes may be on it.
	Unlocated
	// Unidentified: its slurmd may be registered under an unknown name.
	Unidentified
)

// String returns the metric label of a kind.
func (k HoldKind) String() string {
	return [...]string{"nothing", "slurm", "snapshot", "jobs", "drain", "registration", "canary", "backoff", "cordon",
		"cleanup", "identity"}[k]
}

// Release is the deletion rule: it returns what holds a pod. No pod that it holds is deleted, whatever the cause; in
// doubt it holds.
//
// The checks run in order, and the first that applies decides.
func (s *Snapshot) Release(pod *Pod) Hold {
	for _, check := range []func(*Pod) (Hold, bool){
		s.waived, s.exited, s.unscheduled, s.unreachable, s.unlocated, s.unproven, s.occupied, s.undrained,
		s.returning, s.absent, s.unidentified, s.stale,
	} {
		if hold, decided := check(pod); decided {
			return hold
		}
	}
	return Hold{} // the snapshot shows the Slurm node drained or powered down, and empty
}

// release is the decision that a pod may be deleted.
func release() (Hold, bool) { return Hold{}, true }

// waived: a user accepts the loss of jobs, or the cluster that ran them is gone for good.
func (s *Snapshot) waived(*Pod) (Hold, bool) { return Hold{}, s.Set.Waived }

// exited: without processes there are no jobs.
func (s *Snapshot) exited(pod *Pod) (Hold, bool) {
	if !pod.Exited {
		return Hold{}, false
	}
	if again := pod.Created.Add(endedPause); s.Now.Before(again) {
		return Hold{
			Why: "it exited at once; another one is created after a pause", Kind: ExitedEarly, Until: again,
		}, true
	}
	return release()
}

// endedPause is the minimum lifetime of a pod that exits: the next one may well exit for the same reason.
const endedPause = 10 * time.Second

// unscheduled: an unscheduled pod runs nothing. Whether slurmd ever ran is not sufficient: the kubelet may not have
// reported it yet, and Slurm may have given it a job already.
func (s *Snapshot) unscheduled(pod *Pod) (Hold, bool) { return Hold{}, pod.Unscheduled && !pod.EverRan }

// unreachable: without an answer nothing is known about jobs.
func (s *Snapshot) unreachable(*Pod) (Hold, bool) {
	return Hold{Why: "Slurm does not answer, so it is unknown whether it has jobs", Kind: Unreachable}, !s.Answers ||
		s.Slurm == nil
}

// unlocated: Slurm does not have its node, and has too many jobs to list. A job that is being cleaned up may be there,
// and reading Slurm again rarely shows that none is.
func (s *Snapshot) unlocated(pod *Pod) (Hold, bool) {
	return Hold{
		Why: fmt.Sprintf("Slurm has no node %s, and too many jobs to tell whether one that is being cleaned up is still "+
			"there; if none is, delete pod %s by hand", pod.SlurmNode, pod.Name), Kind: Unlocated,
	}, s.Slurm.Unplaced > 0 && s.record(pod) == nil && s.load(pod).Jobs() == 0
}

// unproven: a snapshot from before the drain, or one that is too old, proves nothing.
func (s *Snapshot) unproven(pod *Pod) (Hold, bool) {
	return Hold{Why: "the last snapshot of Slurm is too old to prove that it has no jobs", Kind: Unproven},
		s.vacancy(pod) == slurm.Uncertain
}

func (s *Snapshot) vacancy(pod *Pod) slurm.Vacancy {
	after := s.Now.Add(-maxSnapshotAge)
	since, recorded := s.DrainedSince[pod.SlurmNode]
	if since.After(after) {
		after = since
	}
	vacancy := s.Slurm.Vacancy(pod.SlurmNode, after)
	if (vacancy == slurm.Drained || vacancy == slurm.Absent || vacancy == slurm.Off) && !recorded {
		return slurm.Uncertain
	}
	return vacancy
}

// occupied: jobs run on it, or are being cleaned up.
func (s *Snapshot) occupied(pod *Pod) (Hold, bool) {
	if s.vacancy(pod) != slurm.Occupied {
		return Hold{}, false
	}
	return Hold{Why: s.occupation(pod), Kind: Jobs, Until: s.load(pod).Until}, true
}

// occupation describes the jobs on a Slurm node.
func (s *Snapshot) occupation(pod *Pod) string {
	load := s.load(pod)
	what := fmt.Sprintf("%s runs job %d", pod.SlurmNode, load.Job)
	switch jobs := load.Jobs(); {
	case jobs == 0 || load.Job == 0: // in a large queue the jobs are identified later
		return pod.SlurmNode + " has allocated resources"
	case jobs > 1:
		what = fmt.Sprintf("%s runs %d jobs", pod.SlurmNode, jobs)
	}
	if load.Unlimited {
		return fmt.Sprintf("%s, and job %d has no time limit", what, load.Job)
	}
	return what + " until " + load.Until.UTC().Format("2006-01-02 15:04 MST")
}

// undrained: it is empty, and may get a job at any time.
func (s *Snapshot) undrained(pod *Pod) (Hold, bool) {
	return Hold{Why: pod.SlurmNode + " is not drained yet", Kind: Undrained}, s.vacancy(pod) == slurm.Open
}

// returning: nothing but DOWN keeps jobs away. A slurmd that is only cut off from slurmctld registers by itself when
// that ends, and may get a job at once.
func (s *Snapshot) returning(pod *Pod) (Hold, bool) {
	record := s.record(pod)
	return Hold{Why: maybeRegistered, Kind: Unproven}, record != nil && record.OnlyDown() &&
		s.Now.Sub(s.Slurm.NodeReadBy(pod.SlurmNode)) >= maxAbsenceAge
}

const maybeRegistered = "its slurmd may have registered since Slurm was read"

// absent: Slurm has no such node. A running slurmd may be about to register, and one that a restarted slurmctld has
// forgotten may be about to return, even if the kubelet has not reported it as running yet.
func (s *Snapshot) absent(pod *Pod) (Hold, bool) {
	if s.vacancy(pod) != slurm.Absent {
		return Hold{}, false
	}
	if s.Slurm.ControllerSince.IsZero() {
		return Hold{Why: "slurmctld has just started and may have forgotten it", Kind: Unproven}, true
	}
	if pod.Started.IsZero() && s.Now.Sub(s.Slurm.ListedAt()) >= maxAbsenceAge {
		return Hold{Why: maybeRegistered, Kind: Unproven}, true
	}
	if until := s.registersUntil(pod); s.Now.Before(until) {
		return Hold{Why: "its slurmd may register at any moment", Kind: Registering, Until: until}, true
	}
	return Hold{}, false
}

// registersUntil returns when the slurmd of a pod has registered at the latest: counted from its own start or that of
// slurmctld, whichever is later. A slurmctld whose start is unknown has just started.
func (s *Snapshot) registersUntil(pod *Pod) time.Time {
	expected := s.Slurm.ControllerSince
	if expected.IsZero() {
		expected = s.Now
	}
	if pod.Started.After(expected) {
		expected = pod.Started
	}
	return expected.Add(s.Set.Registration)
}

// unidentified: its slurmd was started without its name, and may run jobs under another one, such as the host name of
// its Kubernetes node. Whatever Slurm has under its name then proves nothing.
func (s *Snapshot) unidentified(pod *Pod) (Hold, bool) {
	return Hold{
		Why: fmt.Sprintf("the slurmd of %s is not started with its name, and may have registered under another one than %s; "+
			"see squeue, and delete the pod by hand when no job runs there", pod.Name, pod.SlurmNode), Kind: Unidentified,
	}, !pod.Identified(s.record(pod))
}

// stale: a snapshot that was not taken for this decision may be outdated.
func (s *Snapshot) stale(pod *Pod) (Hold, bool) {
	return Hold{Why: "Slurm is queried once more before it is deleted", Kind: Unproven}, !s.justRead(pod.SlurmNode)
}
