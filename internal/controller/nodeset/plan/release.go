package plan

import (
	"fmt"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// patience is how old a look at Slurm may be to prove anything. Between the look and the deed somebody may lift a drain, and
// a job may begin: no rule can close that gap, a short one keeps it small.
const patience = 15 * time.Second

// A Hold is why a pod may not go; the zero Hold is none.
type Hold struct {
	// Why is for people; empty when the pod may go.
	Why string
	// Kind says what stands in the way.
	Kind HoldKind
	// Until is when the last job ends at the latest, where that is known, or when the hold ends by itself.
	Until time.Time
}

// A HoldKind is what stands in the way.
type HoldKind uint8

// The kinds of holds.
const (
	// NotHeld: nothing does.
	NotHeld HoldKind = iota
	// Silent: Slurm cannot be asked.
	Silent
	// Unproven: the last look at Slurm does not suffice; a newer one may.
	Unproven
	// Jobs: jobs hold the node.
	Jobs
	// Undrained: a job could begin any time.
	Undrained
	// Registering: slurmd may register, and be given a job, any time.
	Registering
	// Canary: another pod tries the new revision first.
	Canary
	// Fresh: the pod ended as soon as it was made; another one would too.
	Fresh
	// Kept: a person wants it as it is.
	Kept
	// Unidentified: its slurmd may be registered under a name that we do not know.
	Unidentified
)

// String is the kind in a word, for metrics.
func (k HoldKind) String() string {
	return [...]string{"nothing", "slurm", "proof", "jobs", "drain", "registration", "canary", "pause", "person", "identity"}[k]
}

// Release is the deletion rule: it tells what keeps a pod from being deleted. Nothing is deleted that it holds, for whatever
// reason it should go; whatever it does not understand, it holds.
//
// The checks are asked in order. The first that knows decides.
func (s *Snapshot) Release(pod *Pod) Hold {
	for _, check := range []func(*Pod) (Hold, bool){
		s.waived, s.ended, s.unplaced, s.silent, s.unproven, s.occupied, s.undrained, s.absent, s.stale,
	} {
		if hold, decided := check(pod); decided {
			return hold
		}
	}
	return Hold{} // Slurm has just shown the node drained and empty
}

// release is the decision that a pod may go.
func release() (Hold, bool) { return Hold{}, true }

// waived: a person takes the loss, or the cluster that had the jobs is gone for good.
func (s *Snapshot) waived(*Pod) (Hold, bool) { return Hold{}, s.Set.Waived }

// ended: where no process is left, no job is.
func (s *Snapshot) ended(pod *Pod) (Hold, bool) {
	if !pod.Ended {
		return Hold{}, false
	}
	if again := pod.Created.Add(endedPause); s.Now.Before(again) {
		return Hold{Why: "it ended at once, and another one is made after a pause", Kind: Fresh, Until: again}, true
	}
	return release()
}

// endedPause is how long a pod that has ended stays: what ends it may well end the next one too.
const endedPause = 10 * time.Second

// unplaced: where no Kubernetes node has a pod, nothing runs. It does not do to ask whether slurmd ever ran: the kubelet
// may not have said so yet, and Slurm may have given it a job already.
func (s *Snapshot) unplaced(pod *Pod) (Hold, bool) { return Hold{}, pod.Unplaced && !pod.EverRan }

// silent: what cannot be seen is not disturbed.
func (s *Snapshot) silent(*Pod) (Hold, bool) {
	return Hold{Why: "Slurm does not answer, so it is unknown whether it has jobs", Kind: Silent}, !s.Answers || s.Slurm == nil
}

// unproven: what was seen before the drain, or too long ago, proves nothing.
func (s *Snapshot) unproven(pod *Pod) (Hold, bool) {
	return Hold{Why: "the last look at Slurm is too old to prove that it has no jobs", Kind: Unproven},
		s.vacancy(pod) == slurm.Uncertain
}

func (s *Snapshot) vacancy(pod *Pod) slurm.Vacancy {
	after := s.Now.Add(-patience)
	since, witnessed := s.DrainedSince[pod.Node]
	if since.After(after) {
		after = since
	}
	vacancy := s.Slurm.Vacancy(pod.Node, after)
	if (vacancy == slurm.Drained || vacancy == slurm.Absent) && !witnessed {
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

// occupation says in words which jobs hold a node.
func (s *Snapshot) occupation(pod *Pod) string {
	load := s.load(pod)
	what := fmt.Sprintf("%s runs job %d", pod.Node, load.Job)
	switch jobs := load.Jobs(); {
	case jobs == 0 || load.Job == 0: // in a large queue it is found out later which jobs
		return pod.Node + " has something allocated"
	case jobs > 1:
		what = fmt.Sprintf("%s runs %d jobs", pod.Node, jobs)
	}
	if load.Unlimited {
		return fmt.Sprintf("%s, and job %d has no time limit", what, load.Job)
	}
	return what + " until " + load.Until.UTC().Format("2006-01-02 15:04 MST")
}

// undrained: it is empty, and need not be in a moment.
func (s *Snapshot) undrained(pod *Pod) (Hold, bool) {
	return Hold{Why: pod.Node + " is not drained yet", Kind: Undrained}, s.vacancy(pod) == slurm.Open
}

// absent: Slurm has no such node. A slurmd that runs may be about to register, and one that a restarted slurmctld has
// forgotten may be about to come back, also when the kubelet has not yet said that it runs. One that was not told its name may
// run jobs under another one, such as the host name of its Kubernetes node.
func (s *Snapshot) absent(pod *Pod) (Hold, bool) {
	if s.vacancy(pod) != slurm.Absent {
		return Hold{}, false
	}
	if s.Slurm.ControllerSince.IsZero() {
		return Hold{Why: "slurmctld has just started and may have forgotten it", Kind: Unproven}, true
	}
	expected := s.Slurm.ControllerSince
	if pod.Started.After(expected) {
		expected = pod.Started
	}
	if until := expected.Add(s.Set.Registration); s.Now.Before(until) {
		return Hold{Why: "its slurmd may register any moment", Kind: Registering, Until: until}, true
	}
	if !pod.Named && !pod.Registered && !pod.Started.IsZero() {
		return Hold{Why: fmt.Sprintf("slurmd runs in %s, and Slurm never had a node %s: it may have registered under another name; "+
			"see sinfo, and delete the pod by hand when no job runs there", pod.Name, pod.Node), Kind: Unidentified}, true
	}
	return Hold{}, false
}

// stale: what a look shows that was not taken for this decision may be over.
func (s *Snapshot) stale(*Pod) (Hold, bool) {
	return Hold{Why: "Slurm is asked once more before it goes", Kind: Unproven}, !s.Fresh
}
