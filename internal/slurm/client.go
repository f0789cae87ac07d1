package slurm

import (
	"context"
	"errors"
	"time"
)

// A Client talks to one Slurm cluster. Every call has a deadline of its own, whatever the server does, and every
// failure is an *Error. All methods are safe for concurrent use.
type Client interface {
	// Info is what was negotiated with slurmrestd; it is zero before the first successful call.
	Info() Info

	Diag(ctx context.Context) (Diag, error)
	// Nodes lists all Slurm nodes, or reports that nothing has changed since an earlier list. slurmctld has no other
	// nodes than those in the list.
	Nodes(ctx context.Context, since Cursor) (NodeList, error)
	// Node reads one Slurm node. Its errors never mean that the node does not exist.
	Node(ctx context.Context, name string) (Node, error)
	// Jobs lists all jobs that slurmctld still has, or reports that nothing has changed since an earlier list.
	Jobs(ctx context.Context, since Cursor) (JobList, error)
	// EachJob calls each for every job that slurmctld still has, without keeping them in memory. Only the context
	// bounds its duration.
	EachJob(ctx context.Context, each func(*Job) error) error
	// Job reads one job. An error with NumberInvalidJob means that slurmctld does not have it.
	Job(ctx context.Context, id int64) (Job, error)
	// JobStates calls each with the state of every job, and returns the size of the answer.
	JobStates(ctx context.Context, each func(JobState) error) (received int64, err error)
	Reservations(ctx context.Context) ([]Reservation, error)

	// UpdateNodes makes the same change to many nodes in one request. If some of them do not exist, the others may have
	// been changed: the error is then PartialEffect.
	UpdateNodes(ctx context.Context, names []string, update NodeUpdate) error
	// DeleteNodes deletes node records. Slurm refuses to delete nodes with running jobs.
	DeleteNodes(ctx context.Context, names []string) error
	CreateReservation(ctx context.Context, reservation Reservation) error
	DeleteReservation(ctx context.Context, name string) error
}

// Info is what a client and slurmrestd negotiated.
type Info struct {
	// API is the slurmrestd API version in use, such as v0.0.45.
	API string
	// Version is slurmrestd's release.
	Version Version
}

// A Cursor marks the last list that was read. The zero Cursor requests everything. It is Slurm's own time, in seconds:
// a list is sent again if it may have changed in the same second as the last one, so no change is missed between two
// lists.
type Cursor int64

// A NodeList is the answer to Client.Nodes.
type NodeList struct {
	// Unchanged reports that nothing has changed since the cursor; Nodes is then empty.
	Unchanged bool
	Nodes     []Node
	// Cursor is for the next call.
	Cursor Cursor
	// Bytes is the size of the answer.
	Bytes int64
}

// A JobList is the answer to Client.Jobs.
type JobList struct {
	Unchanged bool
	Jobs      []Job
	Cursor    Cursor
	Bytes     int64
}

// A NodeUpdate is a change to Slurm nodes. Fields that are not set are not changed.
type NodeUpdate struct {
	// State is the new state, such as Drain.
	State  TargetState
	Reason string
	// Comment, Features and Topology are not changed if nil, and removed if empty. API versions before v0.0.43 do not
	// have Topology.
	Comment  *string
	Features *[]string
	Topology *string
}

// A TargetState is a state that an update can set.
type TargetState string

// The states that the operator and administrators set.
const (
	Drain   TargetState = "DRAIN"
	Undrain TargetState = "UNDRAIN"
	Resume  TargetState = "RESUME"
	Down    TargetState = "DOWN"
	Fail    TargetState = "FAIL"
	// PowerUp makes Slurm expect the slurmd of a node that is powered down.
	PowerUp TargetState = "POWER_UP"
	// PowerDown takes a node out of scheduling and powers it down when its last job has ended. It clears a drain.
	PowerDown TargetState = "POWER_DOWN"
	// ForcePowerDown is PowerDown that does not wait for jobs: they are requeued, or fail. For a node that is still
	// powering up, the job that waits for it returns to the queue.
	ForcePowerDown TargetState = "POWER_DOWN_FORCE"
)

// An Observer receives every request, for metrics.
type Observer interface {
	ObserveRequest(Observation)
}

// An Observation is one request and its result.
type Observation struct {
	// Call is the name of the call, from a small set, such as "nodes".
	Call string
	// Result is "ok", "unchanged", or the name of the error kind.
	Result   string
	Duration time.Duration
	Received int64
}

// Result returns the result of a call for metrics: "ok" or the name of the error kind.
func Result(err error) string {
	if err == nil {
		return "ok"
	}
	if slurmError, ok := errors.AsType[*Error](err); ok {
		return resultNames[slurmError.Kind]
	}
	return resultNames[Failed]
}

var resultNames = map[Kind]string{
	Unreachable:    "unreachable",
	Timeout:        "timeout",
	Unauthorized:   "unauthorized",
	NotFound:       "not-found",
	Rejected:       "rejected",
	PartialEffect:  "partial-effect",
	Malformed:      "malformed",
	TooLarge:       "too-large",
	Unsupported:    "unsupported",
	ControllerDown: "controller-down",
	Failed:         "failed",
}
