package slurm

import (
	"slices"
	"strings"
	"time"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// A Node is Slurm's record of a node, as far as the operator has a use for it. What changes with every heartbeat, such as
// load and free memory, is left out on purpose: it would make every node look changed all the time.
//
// Nodes in snapshots are shared by all: treat them as read-only.
type Node struct {
	Name     string
	Hostname string
	Address  string

	State State
	Flags Flags
	// OtherStates are the names in Slurm's state that this package does not know, in Slurm's order.
	OtherStates []string

	// Reason is why the node is drained or down; what is left of an old reason may stay after that has ended.
	Reason   string
	ReasonBy string
	ReasonAt time.Time

	Comment        string
	Features       []string
	ActiveFeatures []string
	Partitions     []string
	Reservation    string
	// Topology is the node's place in topologies, as topo-switch:s2,topo-block:b2. Versions of the API before v0.0.43 do not
	// tell.
	Topology string

	// What is allocated can lag behind the state by some seconds: a node can be ALLOCATED with no CPU allocated yet.
	CPUs, AllocatedCPUs     int
	Memory, AllocatedMemory int64 // MiB
	GRES, GRESUsed          string

	// BootedAt and SlurmdStartedAt are as the node told; zero when it never registered.
	BootedAt        time.Time
	SlurmdStartedAt time.Time
	// LastBusy is when the node last became free of jobs.
	LastBusy time.Time
	// Version is the release of its slurmd, empty before it registers with the slurmctld that runs.
	Version string
}

// Equal tells whether two records say the same.
func (n *Node) Equal(other *Node) bool {
	return n.sameState(other) && n.sameUse(other) && n.sameMachine(other)
}

func (n *Node) sameState(other *Node) bool {
	return n.Name == other.Name && n.State == other.State && n.Flags == other.Flags &&
		slices.Equal(n.OtherStates, other.OtherStates) &&
		n.Reason == other.Reason && n.ReasonBy == other.ReasonBy && n.ReasonAt.Equal(other.ReasonAt)
}

func (n *Node) sameUse(other *Node) bool {
	return n.AllocatedCPUs == other.AllocatedCPUs && n.AllocatedMemory == other.AllocatedMemory &&
		n.GRESUsed == other.GRESUsed && n.LastBusy.Equal(other.LastBusy) && n.Comment == other.Comment &&
		slices.Equal(n.ActiveFeatures, other.ActiveFeatures) && n.Reservation == other.Reservation
}

func (n *Node) sameMachine(other *Node) bool {
	return n.Hostname == other.Hostname && n.Address == other.Address && n.CPUs == other.CPUs && n.Memory == other.Memory &&
		n.GRES == other.GRES && slices.Equal(n.Features, other.Features) && slices.Equal(n.Partitions, other.Partitions) &&
		n.Topology == other.Topology && n.BootedAt.Equal(other.BootedAt) && n.SlurmdStartedAt.Equal(other.SlurmdStartedAt) && n.Version == other.Version
}

// Closed reports whether Slurm gives the node no jobs: it is drained, expected to fail, or down.
func (n *Node) Closed() bool {
	return n.Flags.HasAny(FlagDrain|FlagFail) || n.State == StateDown
}

// Drained reports whether the record proves that the node is closed to jobs and that nothing is allocated on it. It says
// nothing about suspended jobs, which give their CPUs back while their processes stay: use Snapshot.Vacancy to decide
// whether a node may be disturbed.
//
// It is deliberately hard to satisfy: of the base states only idle and down will do, so that a state that is unknown,
// invalid or introduced by a later version of Slurm is not drained.
func (n *Node) Drained() bool { return n.Closed() && !n.Busy() && n.State != StateFuture }

// Busy reports whether the record shows that something is allocated or still being cleaned up. A node can be neither busy
// nor drained, and a state that is not understood counts as busy.
func (n *Node) Busy() bool {
	free := n.State == StateIdle || n.State == StateDown || n.State == StateFuture
	return !free || n.Flags.Has(FlagCompleting) || n.AllocatedCPUs > 0 || n.AllocatedMemory > 0
}

// Draining reports whether a drain is set, whoever set it.
func (n *Node) Draining() bool { return n.Flags.Has(FlagDrain) }

// DrainedByUs reports whether the node is drained by us and by nobody else. We never set FAIL: a person has added it, and
// undrain would clear it too.
func (n *Node) DrainedByUs() bool {
	return n.Draining() && IsOurReason(n.Reason) && !n.Flags.Has(FlagFail)
}

// HeldByOthers reports whether a person or Slurm itself has closed the node: a drain without our reason (or without any),
// FAIL, or DOWN. We neither lift such a state nor overwrite its reason, and so set no drain of ours on top of it. A node
// that is down under a drain of ours is still ours to undrain when it is back.
func (n *Node) HeldByOthers() bool { return n.Closed() && !n.DrainedByUs() }

// Reserved reports whether a reservation holds the node. Slurm refuses to delete the record of such a node.
func (n *Node) Reserved() bool {
	return n.Reservation != "" || n.Flags.HasAny(FlagReserved|FlagMaintenance)
}

// Responding reports whether slurmctld has heard from the node's slurmd lately.
func (n *Node) Responding() bool {
	return !n.Flags.HasAny(FlagNotResponding|FlagPoweredDown|FlagPoweringDown) && n.State != StateDown &&
		n.State != StateFuture && n.State != StateUnknown
}

// StateNames lists the state as Slurm prints it: the base state, then the flags.
func (n *Node) StateNames() []string {
	return slices.Concat([]string{n.State.String()}, n.Flags.Names(), n.OtherStates)
}

// OurReason makes the reason of a drain of ours.
func OurReason(why string) string { return slinkyv1beta1.ReasonPrefix + why }

// IsOurReason tells whether a reason is one of ours.
func IsOurReason(reason string) bool { return strings.HasPrefix(reason, slinkyv1beta1.ReasonPrefix) }

// NoReason replaces a reason of ours when our drain is lifted. 24.11 keeps a reason after its drain, takes no empty one, and
// does not overwrite it when Slurm itself drains the node later: that drain would pass for ours.
const NoReason = "lifted by slurm-operator; for a later drain see the log of slurmctld"
