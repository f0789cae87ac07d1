package plan

import (
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A Snapshot is everything that a plan is made from.
type Snapshot struct {
	Now  time.Time
	Set  Set
	Pods []Pod
	// KubernetesNodes are the Kubernetes nodes, by name: those of pods, and in DaemonSet mode all.
	KubernetesNodes map[string]KubernetesNode
	// Slurm is the last snapshot of the Slurm cluster; nil if there is none.
	Slurm *slurm.Snapshot
	// JustRead says that Slurm was read for this plan. Others change Slurm nodes too: a drain, undrain or deletion that
	// is based on an older snapshot could undo what they have just done. If Reread is not nil, only these Slurm nodes
	// were read, and the jobs.
	JustRead bool
	Reread   map[string]bool
	// Answers reports whether slurmctld answered the last request.
	Answers bool
	// DrainedSince is since when each Slurm node is known to be drained or absent; see DrainHistory.
	DrainedSince map[string]time.Time
}

// A Set is what the spec asks for.
type Set struct {
	// Name and UID of the NodeSet; the UID identifies its records in Slurm.
	Name, UID string
	// DaemonSet says that every wanted Kubernetes node gets a pod; otherwise there are Replicas pods.
	DaemonSet bool
	Replicas  int
	// Revision is that of new pods.
	Revision string
	// Withheld says why no pod can be created now, such as an invalid configuration; empty if pods can. No pod is
	// replaced then.
	Withheld string
	Update   Update
	// MinReady is how long a pod must be ready to be available.
	MinReady time.Duration
	// Registration is how long a slurmd may take to register.
	Registration time.Duration
	// Deleting says that the NodeSet is being deleted.
	Deleting bool
	// Waived says that pods are deleted regardless of jobs: a user asked for it, or the cluster is gone for good.
	Waived bool
	// Prune says which records of Slurm nodes without a pod are deleted.
	Prune PrunePolicy
	// Elastic says that Slurm decides which pods there are, and not Replicas; nil if it does not, and if there are no
	// records left from when it did.
	Elastic *Elastic
}

// isElastic reports whether Slurm decides which pods there are.
func (s *Set) isElastic() bool { return s.Elastic != nil && !s.Elastic.Ended }

// A PrunePolicy says which records of Slurm nodes without a pod are deleted.
type PrunePolicy uint8

// The policies.
const (
	// PruneScaledIn deletes the records of Slurm nodes that the operator drained for removal.
	PruneScaledIn PrunePolicy = iota
	// PruneNever deletes none.
	PruneNever
	// PruneAll deletes every record of the NodeSet without a pod.
	PruneAll
)

// Replaces reports whether pods of an older revision are replaced now.
func (s *Set) Replaces() bool { return s.Update.Replace && s.Withheld == "" }

// An Update says how pods of an older revision are replaced.
type Update struct {
	// Replace says that they are replaced now.
	Replace bool
	// MaxUnavailable is how many pods may be unavailable meanwhile.
	MaxUnavailable int
}

// A Pod is a pod of the NodeSet, as Kubernetes shows it.
type Pod struct {
	Name, UID string
	// Ordinal identifies a pod; in DaemonSet mode it is -1, and KubernetesNode does.
	Ordinal int
	// SlurmNode is the name of its Slurm node.
	SlurmNode string
	// KubernetesNode is the Kubernetes node that it runs on, or is bound to; empty if neither.
	KubernetesNode string
	// Unscheduled says that it is not scheduled yet, so that nothing can have started.
	Unscheduled bool
	Revision    string
	Created     time.Time
	// Terminating says that it is being deleted; Exited that its containers have exited for good.
	Terminating, Exited bool
	// Terminates is, if Terminating, when its containers have exited at the latest; its kubelet may be dead and not
	// confirm it.
	Terminates time.Time
	// EverRan reports whether its slurmd ever ran; Started is since when it runs, zero if it does not.
	EverRan bool
	Started time.Time
	// ReadySince is since when it is ready; zero if it is not.
	ReadySince time.Time
	// Registered reports whether Slurm ever had its node.
	Registered bool
	// Named reports whether its slurmd is started with the name of its Slurm node, and cannot register under another
	// one.
	Named bool
	// Dynamic says that its slurmd registers without a record in slurm.conf. Those of elastic NodeSets have one.
	Dynamic bool
	// Failing is Kubernetes' reason why it does not start; empty if there is none.
	Failing string
	// Cordoned says that a user wants its Slurm node drained.
	Cordoned bool
	// Unprotected says that it may be evicted now: see Protection.
	Unprotected bool
	// Mark is who set its cordon annotation.
	Mark Mark
	// Request is the name of the request for room that it uses; empty if there is none.
	Request string
	// DeletionCost is a user's preference at scale-in: the lowest is deleted first.
	DeletionCost int32
}

// Identified reports whether a record, nil if there is none, is that of a pod's own slurmd. One that is started without
// its name may run jobs under another one, also before the kubelet reports it, while the record under its name is that
// of an earlier pod. What proves otherwise comes from slurmd: when it started, and the instance ID. The comment does
// not, because the operator writes it for whichever pod has the name.
func (p *Pod) Identified(record *slurm.Node) bool {
	if p.Named {
		return true
	}
	if record == nil {
		return p.Registered
	}
	since := p.Created
	if !p.Started.IsZero() {
		since = p.Started.Add(-startReportedAfter)
	}
	owner, err := slurm.ParseOwner(record.Instance)
	return !record.SlurmdStartedAt.Before(since) && (err != nil || owner.PodName == p.Name)
}

// startReportedAfter is how long after the start of a slurmd its container may be reported to have started.
const startReportedAfter = 5 * time.Second

// A KubernetesNode is a Kubernetes node.
type KubernetesNode struct {
	// Wanted says that, in DaemonSet mode, it gets a pod; Stays that a pod that is there stays: a NoSchedule taint
	// keeps new pods away and moves none. Selected says that node selector and affinity match, whatever the taints are.
	Wanted, Stays, Selected bool
	// SlurmNode is the name of its Slurm node in DaemonSet mode.
	SlurmNode string
	// Drain says why its Slurm nodes must be drained, such as a cordon; empty if they must not.
	Drain string
}

// justRead reports whether a Slurm node was read for this plan.
func (s *Snapshot) justRead(node string) bool {
	return s.JustRead && (s.Reread == nil || s.Reread[node])
}

// allRead reports whether all Slurm nodes were read for this plan.
func (s *Snapshot) allRead() bool { return s.JustRead && s.Reread == nil }

// record returns the record of a pod's Slurm node; nil if there is none, or no snapshot.
func (s *Snapshot) record(pod *Pod) *slurm.Node {
	if s.Slurm == nil {
		return nil
	}
	node, _ := s.Slurm.Node(pod.SlurmNode)
	return node
}

// load returns the jobs on a pod's Slurm node, as far as known.
func (s *Snapshot) load(pod *Pod) slurm.Load {
	if s.Slurm == nil {
		return slurm.Load{}
	}
	return s.Slurm.Loads[pod.SlurmNode]
}

// busy reports whether a pod's Slurm node is known to have jobs.
func (s *Snapshot) busy(pod *Pod) bool {
	record := s.record(pod)
	return s.load(pod).Jobs() > 0 || (record != nil && record.Busy())
}

// available reports whether Slurm can schedule jobs on a pod: it is up, and its Slurm node is open.
func (s *Snapshot) available(pod *Pod) bool { return s.up(pod) && !s.record(pod).Closed() }

// up reports whether a pod is ready for long enough, and its Slurm node responds.
func (s *Snapshot) up(pod *Pod) bool {
	record := s.record(pod)
	return !pod.Terminating && !pod.Exited && !pod.ReadySince.IsZero() && s.Now.Sub(pod.ReadySince) >= s.Set.MinReady &&
		record != nil && record.Responding()
}

// overdue reports whether a pod did not come up in time.
func (s *Snapshot) overdue(pod *Pod) bool {
	if pod.Terminating || s.available(pod) {
		return false
	}
	record := s.record(pod)
	came := !pod.ReadySince.IsZero() && record != nil && record.Responding()
	return pod.Exited || (!came && s.Now.Sub(s.began(pod)) >= s.Set.Registration)
}

// began returns when a pod began to come up: when its slurmd started or, before that, when the pod was created. A
// slurmctld that started later has yet to hear from a ready slurmd that it knows.
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
