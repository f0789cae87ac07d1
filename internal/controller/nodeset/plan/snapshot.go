package plan

import (
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A Snapshot is all that a plan is made from.
type Snapshot struct {
	Now  time.Time
	Set  Set
	Pods []Pod
	// Machines are the Kubernetes nodes, by name: those that pods are on, and in DaemonSet mode those that want one.
	Machines map[string]Machine
	// Slurm is what was last seen of the Slurm cluster; nil when nothing was.
	Slurm *slurm.Snapshot
	// Fresh says that the look was taken for this plan. Others change things too: who drains, undrains or deletes on an older
	// look may undo what they have just done.
	Fresh bool
	// Answers tells whether slurmctld answered when it was last asked.
	Answers bool
	// DrainedSince is from when on each node is known to have been drained, or not there; see Witness.
	DrainedSince map[string]time.Time
}

// A Set is what the spec asks for.
type Set struct {
	// Name of the NodeSet, and its UID, by which its records in Slurm are known.
	Name, UID string
	// DaemonSet says that every machine in Machines that wants a pod gets one; otherwise there are Replicas pods.
	DaemonSet bool
	Replicas  int
	// Revision is the one that new pods get.
	Revision string
	// Withheld says why no pod can be created now, such as that its configuration is wrong; empty when it can. No pod is replaced then.
	Withheld string
	Update   Update
	// MinReady is how long a pod must be ready to be available.
	MinReady time.Duration
	// Registration is how long a slurmd may take to register.
	Registration time.Duration
	// Deleting says that the NodeSet is being deleted.
	Deleting bool
	// Waived says that pods may go without regard for jobs: a person said so, or the cluster is gone for good.
	Waived bool
	// Prune says which records of nodes without a pod are removed from Slurm.
	Prune PrunePolicy
}

// A PrunePolicy says which records of nodes without a pod are removed from Slurm.
type PrunePolicy uint8

// The policies.
const (
	// PruneScaledIn removes the records of nodes that the operator itself has drained to remove them.
	PruneScaledIn PrunePolicy = iota
	// PruneNever removes none.
	PruneNever
	// PruneAll removes every record of the NodeSet that has no pod.
	PruneAll
)

// Replaces reports whether pods of an older revision are replaced now.
func (s *Set) Replaces() bool { return s.Update.Replace && s.Withheld == "" }

// An Update says how pods of an older revision are replaced.
type Update struct {
	// Replace says that they are replaced at all, now.
	Replace bool
	// MaxUnavailable is how many pods may be unavailable meanwhile.
	MaxUnavailable int
}

// A Pod is one of the set's pods, as Kubernetes shows it.
type Pod struct {
	Name, UID string
	// Ordinal tells the pods of a set apart; it is -1 in DaemonSet mode, where Machine does.
	Ordinal int
	// Node is the name of its Slurm node.
	Node string
	// Machine is the Kubernetes node that it is on, or has to be on; empty while that is open.
	Machine string
	// Unplaced says that no Kubernetes node has it yet, so that nothing can have started.
	Unplaced bool
	Revision string
	Created  time.Time
	// Terminating says that it is being deleted already; Ended that its containers have ended for good.
	Terminating, Ended bool
	// EverRan tells whether its slurmd ever ran; Started is since when it runs now, zero when it does not.
	EverRan bool
	Started time.Time
	// ReadySince is since when it is ready; zero when it is not.
	ReadySince time.Time
	// Registered reports whether Slurm was ever seen to have its node.
	Registered bool
	// Named reports whether its slurmd is told the name of its node, so that it cannot register under another one.
	Named bool
	// Failing says why it does not come up, as Kubernetes puts it; empty when nothing is wrong.
	Failing string
	// Cordoned says that a person wants its Slurm node drained.
	Cordoned bool
	// DeletionCost is a person's say in who goes first.
	DeletionCost int32
}

// A Machine is a Kubernetes node.
type Machine struct {
	// Wanted says that, in DaemonSet mode, it gets a pod; Stays that a pod that is there stays: a NoSchedule taint keeps new
	// pods away and moves none. Selected says that node selector and affinity match, whatever the taints are.
	Wanted, Stays, Selected bool
	// Node is the name that its Slurm node has in DaemonSet mode.
	Node string
	// Drain says why Slurm is to give it no more jobs, such as that it is cordoned; empty when it may.
	Drain string
}

// record is Slurm's record of a pod's node; nil when there is none, or when Slurm is not known.
func (s *Snapshot) record(pod *Pod) *slurm.Node {
	if s.Slurm == nil {
		return nil
	}
	node, _ := s.Slurm.Node(pod.Node)
	return node
}

// load is the jobs on a pod's node, as far as they are known.
func (s *Snapshot) load(pod *Pod) slurm.Load {
	if s.Slurm == nil {
		return slurm.Load{}
	}
	return s.Slurm.Loads[pod.Node]
}

// busy tells whether jobs are known to hold a pod's node.
func (s *Snapshot) busy(pod *Pod) bool {
	record := s.record(pod)
	return s.load(pod).Jobs() > 0 || (record != nil && record.Busy())
}

// available reports whether a pod does its work: it has come up, and Slurm gives it jobs.
func (s *Snapshot) available(pod *Pod) bool { return s.up(pod) && !s.record(pod).Closed() }

// up tells whether a pod could do its work: it is ready for long enough, and Slurm has heard of it.
func (s *Snapshot) up(pod *Pod) bool {
	record := s.record(pod)
	return !pod.Terminating && !pod.Ended && !pod.ReadySince.IsZero() && s.Now.Sub(pod.ReadySince) >= s.Set.MinReady &&
		record != nil && record.Responding()
}

// overdue tells whether a pod had its time to come up and did not.
func (s *Snapshot) overdue(pod *Pod) bool {
	if pod.Terminating || s.available(pod) {
		return false
	}
	record := s.record(pod)
	came := !pod.ReadySince.IsZero() && record != nil && record.Responding()
	return pod.Ended || (!came && s.Now.Sub(s.began(pod)) >= s.Set.Registration)
}

// began is when a pod began to come up: when its slurmd started, or while it has not, when the pod was made. A slurmctld that
// has started after that has yet to hear of a slurmd that it knows and that is ready.
func (s *Snapshot) began(pod *Pod) time.Time {
	switch record := s.record(pod); {
	case !pod.EverRan || pod.Started.IsZero():
		return pod.Created
	case record == nil || pod.ReadySince.IsZero():
		return pod.Started
	case s.Slurm.ControllerSince.IsZero(): // it has just started
		return s.Now
	case s.Slurm.ControllerSince.After(pod.Started):
		return s.Slurm.ControllerSince
	default:
		return pod.Started
	}
}
