package slurm

import (
	"context"
	"errors"
	"time"
)

// A Client asks one Slurm cluster. Every call ends within a deadline of its own, whatever the other side does, and every
// failure is an *Error. All methods may be called at the same time.
type Client interface {
	// Info is what was agreed on with slurmrestd; it is zero before the first successful call.
	Info() Info

	// Ping asks whether slurmctld answers. It fails with ControllerDown when it does not.
	Ping(ctx context.Context) (Ping, error)
	Diag(ctx context.Context) (Diag, error)
	// Nodes lists all nodes, or says that nothing has changed since an earlier list. A node that is not in the list is
	// one that slurmctld does not have.
	Nodes(ctx context.Context, since Cursor) (NodeList, error)
	// Node asks for one node. Its errors never mean that there is no such node.
	Node(ctx context.Context, name string) (Node, error)
	// Jobs lists all jobs that slurmctld still knows, or says that nothing has changed since an earlier list.
	Jobs(ctx context.Context, since Cursor) (JobList, error)
	// EachJob hands over all jobs that slurmctld still knows, one by one, and keeps none of them. It takes as long as its
	// context allows.
	EachJob(ctx context.Context, each func(*Job) error) error
	// Job asks for one job. An error with NumberInvalidJob means that slurmctld does not have it.
	Job(ctx context.Context, id int64) (Job, error)
	// JobStates hands over the states of all jobs, one by one, and returns the size of the answer.
	JobStates(ctx context.Context, each func(JobState) error) (received int64, err error)
	Partitions(ctx context.Context) ([]Partition, error)
	Reservations(ctx context.Context) ([]Reservation, error)

	// UpdateNodes makes one change to many nodes in one request. When some of them do not exist, the others may have been
	// changed: the error is then of the kind PartialEffect.
	UpdateNodes(ctx context.Context, names []string, update NodeUpdate) error
	// DeleteNodes removes the records of nodes. Slurm refuses for nodes with jobs.
	DeleteNodes(ctx context.Context, names []string) error
	CreateReservation(ctx context.Context, reservation Reservation) error
	DeleteReservation(ctx context.Context, name string) error
	// Reconfigure makes slurmctld read its configuration. Success does not mean that slurmctld has survived it.
	Reconfigure(ctx context.Context) error
	SubmitJob(ctx context.Context, job JobRequest) (int64, error)
	CancelJob(ctx context.Context, id int64) error
}

// Info is what a client and slurmrestd agreed on.
type Info struct {
	// API is the version of slurmrestd's API in use, such as v0.0.45.
	API string
	// Version is slurmrestd's release.
	Version Version
}

// A Cursor marks how far a list is known. The zero Cursor asks for everything. It is Slurm's own time, in seconds: a list
// is repeated when it may have changed in the very second of the last one, so no change falls between two lists.
type Cursor int64

// A NodeList is an answer to Client.Nodes.
type NodeList struct {
	// Unchanged says that nothing has changed since the cursor; there are no nodes in it then.
	Unchanged bool
	Nodes     []Node
	// Cursor is for the next call.
	Cursor Cursor
	// Bytes is the size of the answer.
	Bytes int64
}

// A JobList is an answer to Client.Jobs.
type JobList struct {
	Unchanged bool
	Jobs      []Job
	Cursor    Cursor
	Bytes     int64
}

// A NodeUpdate is a change to nodes. What is left out stays as it is.
type NodeUpdate struct {
	// State is the new state, such as Drain.
	State  TargetState
	Reason string
	// Comment, Features and Topology are not changed when nil, and removed when empty. Versions of the API before v0.0.43 know
	// no Topology.
	Comment  *string
	Features *[]string
	Topology *string
}

// A TargetState is a state that a node can be told to take.
type TargetState string

// The states that the operator sets, and those that people set.
const (
	Drain   TargetState = "DRAIN"
	Undrain TargetState = "UNDRAIN"
	Resume  TargetState = "RESUME"
	Down    TargetState = "DOWN"
	Fail    TargetState = "FAIL"
)

// An Observer is told about every request, for metrics.
type Observer interface {
	ObserveRequest(Observation)
}

// An Observation is one request and how it ended.
type Observation struct {
	// Call is the name of the call, one of a few, such as "nodes".
	Call string
	// Result is "ok", "unchanged", or the name of the error's kind.
	Result   string
	Duration time.Duration
	Received int64
}

// Result names how a call ended, for metrics: "ok" or the error's kind in one word.
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
