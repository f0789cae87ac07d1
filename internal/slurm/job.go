package slurm

import (
	"slices"
	"time"
)

// A Job is Slurm's record of a job, as far as the operator has a use for it.
type Job struct {
	ID   int64
	Name string
	// States is Slurm's state of the job: a base state and flags.
	States []string
	User   string
	UserID int64
	// Partition may be a list while the job is pending.
	Partition string
	// Nodes is the hostlist expression of the nodes that it has, or of those where it is still being cleaned up.
	Nodes       string
	Reservation string
	// Start and End are zero when not known. End of a running job is when its time limit ends it; it is zero when the job
	// has no limit.
	Start, End time.Time
}

// idleJobStates are the states in which a job has nothing on its nodes, unless another name says otherwise.
var idleJobStates = []string{
	"PENDING", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
	"OUT_OF_MEMORY",
	// flags that go with them
	"LAUNCH_FAILED", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RECONFIG_FAIL", "REVOKED", "REQUEUE_FED", "RESV_DEL_HOLD",
}

// Holds tells whether the job may have processes on its nodes: it runs, is suspended, is being started or cleaned up, or
// is in a state that is not understood.
func (j *Job) Holds() bool {
	if len(j.States) == 0 {
		return true
	}
	return slices.ContainsFunc(j.States, func(state string) bool { return !slices.Contains(idleJobStates, state) })
}

// Completing tells whether the job has ended and is being cleaned up on its nodes.
func (j *Job) Completing() bool { return slices.Contains(j.States, "COMPLETING") }

// Running tells whether the job runs and is not already being cleaned up.
func (j *Job) Running() bool { return slices.Contains(j.States, "RUNNING") && !j.Completing() }

// Pending tells whether the job waits for nodes.
func (j *Job) Pending() bool { return slices.Contains(j.States, "PENDING") }

// JobState is the state of a job without anything else, which is cheap to ask for.
type JobState struct {
	// ID is a number, or for tasks of an array an expression such as 7_[2-5].
	ID     string
	States []string
}

// A JobRequest describes a job to submit.
type JobRequest struct {
	Name      string
	Script    string
	Partition string
	// Nodes is how many nodes the job takes.
	Nodes int
	// RequiredNodes names nodes that the job must have.
	RequiredNodes []string
	TimeLimit     time.Duration
}
