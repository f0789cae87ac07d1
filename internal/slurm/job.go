package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// A Job is Slurm's record of a job, reduced to what the operator needs.
type Job struct {
	ID   int64
	Name string
	// States is the state: a base state and flags.
	States []string
	User   string
	UserID int64
	// Partition may be a list while the job is pending.
	Partition string
	// Reason is why a pending job waits, as Slurm names it: see ParsePendingReason.
	Reason string
	// Nodes is the hostlist expression of its nodes, including those where it is still being cleaned up.
	Nodes       string
	Reservation string
	// Start and End are zero if not known. The End of a running job is when its time limit expires; it is zero if the
	// job has no limit.
	Start, End time.Time
}

// idleJobStates are the states in which a job has no processes on its nodes, unless another state of it says otherwise.
var idleJobStates = []string{
	"PENDING", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
	"OUT_OF_MEMORY",
	// flags that occur with them
	"LAUNCH_FAILED", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RECONFIG_FAIL", "REVOKED", "REQUEUE_FED",
	"RESV_DEL_HOLD",
}

// Holds reports whether the job may have processes on its nodes: it runs, is suspended, starting or being cleaned up,
// or its state is not understood.
func (j *Job) Holds() bool {
	if len(j.States) == 0 {
		return true
	}
	return slices.ContainsFunc(j.States, func(state string) bool { return !slices.Contains(idleJobStates, state) })
}

// Completing reports whether the job has ended and is being cleaned up on its nodes.
func (j *Job) Completing() bool { return slices.Contains(j.States, "COMPLETING") }

// Running reports whether the job runs and is not already being cleaned up.
func (j *Job) Running() bool { return slices.Contains(j.States, "RUNNING") && !j.Completing() }

// Pending reports whether the job waits for nodes.
func (j *Job) Pending() bool { return slices.Contains(j.States, "PENDING") }

// JobState is only the state of a job, which is cheap to query.
type JobState struct {
	// ID starts with the job's own number, followed by its index in an array or in a heterogeneous job, as in 9_2 or
	// 9+1. Array tasks that have not started have the number of the array: 7_3, 7_4 and so on, one after the other.
	ID     string
	States []string
}

// Number returns the job number for Client.Job.
func (s JobState) Number() (int64, error) {
	end := 0
	for end < len(s.ID) && s.ID[end] >= '0' && s.ID[end] <= '9' {
		end++
	}
	number, err := strconv.ParseInt(s.ID[:end], 10, 64)
	if err != nil || number <= 0 || (end < len(s.ID) && s.ID[end] != '_' && s.ID[end] != '+') {
		return 0, fmt.Errorf("%.40q does not begin with the number of a job", s.ID)
	}
	return number, nil
}
