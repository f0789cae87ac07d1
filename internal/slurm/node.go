package slurm

import (
	"slices"
	"strings"
	"time"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// A Node is Slurm's record of a node, reduced to what the operator needs. Values that change with every heartbeat, such
// as load and free memory, are omitted on purpose: every node would appear changed all the time.
//
// Nodes in snapshots are shared: treat them as read-only.
type Node struct {
	Name     string
	Hostname string
	Address  string

	State State
	Flags Flags
	// OtherStates are the unknown names in Slurm's state, in Slurm's order.
	OtherStates []string

	// Reason is why the node is drained or down; a stale reason may remain afterwards.
	Reason   string
	ReasonBy string
	ReasonAt time.Time

	Comment string
	// Instance is the instance ID that slurmd brought: see Owner.
	Instance       string
	Features       []string
	ActiveFeatures []string
	Partitions     []string
	Reservation    string
	// Topology is the node's place in topologies, such as topo-switch:s2,topo-block:b2. It is empty in API versions
	// before v0.0.43.
	Topology string

	// Allocations can lag behind the state by some seconds: a node can be ALLOCATED with no CPU allocated yet.
	CPUs, AllocatedCPUs     int
	Memory, AllocatedMemory int64 // MiB
	GRES, GRESUsed          string

	// BootedAt and SlurmdStartedAt are as reported by slurmd; zero if it never registered.
	BootedAt        time.Time
	SlurmdStartedAt time.Time
	// LastBusy is when the node last became free of jobs.
	LastBusy time.Time
	// Version is the release of its slurmd, empty until it registers with the current slurmctld.
	Version string
}

// Equal reports whether two records are the same.
func (n *Node) Equal(other *Node) bool {
	return n.sameState(other) && n.sameUsage(other) && n.sameHost(other)
}

func (n *Node) sameState(other *Node) bool {
	return n.Name == other.Name && n.State == other.State && n.Flags == other.Flags &&
		slices.Equal(n.OtherStates, other.OtherStates) &&
		n.Reason == other.Reason && n.ReasonBy == other.ReasonBy && n.ReasonAt.Equal(other.ReasonAt)
}

func (n *Node) sameUsage(other *Node) bool {
	return n.AllocatedCPUs == other.AllocatedCPUs && n.AllocatedMemory == other.AllocatedMemory &&
		n.GRESUsed == other.GRESUsed && n.LastBusy.Equal(other.LastBusy) && n.Comment == other.Comment &&
		n.Instance == other.Instance &&
		slices.Equal(n.ActiveFeatures, other.ActiveFeatures) && n.Reservation == other.Reservation
}

func (n *Node) sameHost(other *Node) bool {
	return n.Hostname == other.Hostname && n.Address == other.Address && n.CPUs == other.CPUs &&
		n.Memory == other.Memory &&
		n.GRES == other.GRES && slices.Equal(n.Features, other.Features) &&
		slices.Equal(n.Partitions, other.Partitions) &&
		n.Topology == other.Topology && n.BootedAt.Equal(other.BootedAt) &&
		n.SlurmdStartedAt.Equal(other.SlurmdStartedAt) && n.Version == other.Version
}

// Closed reports whether Slurm schedules no jobs on the node: it is drained, failing or down.
func (n *Node) Closed() bool {
	return n.Flags.HasAny(FlagDrain|FlagFail) || n.State == StateDown
}

// OnlyDown reports whether the node is down, and nothing else closes it: it opens as soon as its slurmd registers.
func (n *Node) OnlyDown() bool { return n.State == StateDown && !n.Flags.HasAny(FlagDrain|FlagFail) }

// Drained reports whether the record proves that the node is closed to jobs and that nothing is allocated on it. It
// does not cover suspended jobs, which release their CPUs while their processes stay: use Snapshot.Vacancy to decide
// whether a node may be disrupted.
//
// It is deliberately strict: only the base states idle and down qualify, so that an unknown or invalid state, or one
// from a later Slurm release, is never drained.
func (n *Node) Drained() bool { return n.Closed() && !n.Busy() && n.State != StateFuture }

// Busy reports whether the record shows that something is allocated or still being cleaned up. A node can be neither
// busy nor drained. A state that is not understood counts as busy.
func (n *Node) Busy() bool {
	free := n.State == StateIdle || n.State == StateDown || n.State == StateFuture
	return !free || n.Flags.Has(FlagCompleting) || n.AllocatedCPUs > 0 || n.AllocatedMemory > 0
}

// Draining reports whether a drain is set, by the operator or by others.
func (n *Node) Draining() bool { return n.Flags.Has(FlagDrain) }

// DrainedByUs reports whether only the operator has drained the node. The operator never sets FAIL: an administrator
// did, and undrain would clear it too.
func (n *Node) DrainedByUs() bool {
	return n.Draining() && IsOurReason(n.Reason) && !n.Flags.Has(FlagFail)
}

// HeldByOthers reports whether an administrator or Slurm itself has closed the node: a drain without the operator's
// reason (or without any), FAIL, or DOWN. The operator neither lifts such a state nor overwrites its reason, and so
// sets no drain of its own on top of it. A node that is down under a drain of the operator can still be undrained when
// it is back.
func (n *Node) HeldByOthers() bool { return n.Closed() && !n.DrainedByUs() }

// Reserved reports whether a reservation includes the node. Slurm refuses to delete the record of such a node.
func (n *Node) Reserved() bool {
	return n.Reservation != "" || n.Flags.HasAny(FlagReserved|FlagMaintenance)
}

// PoweredOff reports whether slurmctld has powered the node down, or is about to, and nothing is allocated on it. No
// job can start on it before it was powered up again and a slurmd has registered after that: a slurmd that was running
// before does not serve it. A job can be allocated to it at any time once it is powered down.
func (n *Node) PoweredOff() bool {
	return n.Flags.HasAny(FlagPoweredDown|FlagPoweringDown) && !n.Flags.Has(FlagPoweringUp) && !n.Busy()
}

// PoweringUp reports whether slurmctld waits for the node's slurmd to register after a power-up.
func (n *Node) PoweringUp() bool { return n.Flags.Has(FlagPoweringUp) }

// TimedOut reports whether slurmctld has given up waiting for the node's slurmd after a power-up. An administrator who
// sets such a node down gives another reason.
func (n *Node) TimedOut() bool {
	return n.State == StateDown && n.Flags.Has(FlagPoweredDown) && n.Reason == resumeTimeoutReason
}

// GaveUp reports whether slurmctld has set the node down because its slurmd did not respond. An administrator who sets
// a node down gives another reason.
func (n *Node) GaveUp() bool {
	return n.OnlyDown() && n.Reason == notRespondingReason
}

// slurmctld's own reasons, in all supported releases.
const (
	resumeTimeoutReason = "ResumeTimeout reached"
	notRespondingReason = "Not responding"
)

// Responding reports whether slurmctld has recently heard from the node's slurmd.
func (n *Node) Responding() bool {
	return !n.Flags.HasAny(FlagNotResponding|FlagPoweredDown|FlagPoweringDown) && n.State != StateDown &&
		n.State != StateFuture && n.State != StateUnknown
}

// StateNames returns the state as Slurm prints it: the base state, then the flags.
func (n *Node) StateNames() []string {
	return slices.Concat([]string{n.State.String()}, n.Flags.Names(), n.OtherStates)
}

// OurReason returns the reason of a drain that the operator sets.
func OurReason(why string) string { return slinkyv1beta1.ReasonPrefix + why }

// IsOurReason reports whether the operator set the reason.
func IsOurReason(reason string) bool { return strings.HasPrefix(reason, slinkyv1beta1.ReasonPrefix) }

// NoReason replaces the operator's reason when its drain is lifted. 24.11 keeps a reason after its drain, does not
// accept an empty one, and does not overwrite it when Slurm itself drains the node later: that drain would be mistaken
// for the operator's.
const NoReason = "lifted by slurm-operator; for a later drain see the log of slurmctld"
