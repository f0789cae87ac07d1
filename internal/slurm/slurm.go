// Package slurm is the operator's view of Slurm clusters: their objects, a client to query and change them, and a cache
// of their current state.
//
// It has four parts. The types (Node, Job, Reservation, …) are plain values with pure predicates that fail closed: in
// doubt they return false. A Client talks to one cluster; every failure is an *Error with a Kind. A Mirror polls one
// cluster for all controllers and publishes immutable snapshots, each with the time at which it was read. A Pool holds
// one session (a client and its mirror) per cluster and reports its status.
//
// Two rules protect running jobs. First, a Slurm node is gone only if it is missing from a complete list of all nodes:
// the answer to a query for one missing node is a success with an error without a number, which could mean anything
// else too. Second, a Slurm node is vacant only if its record shows it drained and no job holds it: the record of a
// node with a suspended job can look drained (see Snapshot.Vacancy).
package slurm

import "time"

// A Reservation reserves Slurm nodes for users or for maintenance.
type Reservation struct {
	Name  string
	Start time.Time
	End   time.Time
	// Nodes is a hostlist expression; on creation, ALL means all nodes.
	Nodes string
	Users []string
	Flags []string
}

// A Diag holds slurmctld's statistics.
type Diag struct {
	// Now is slurmctld's clock at the time of the answer.
	Now time.Time
	// CountersSince is when the counters started: when slurmctld started or, if later, when they were reset, by a user
	// or by slurmctld itself once a day. So slurmctld has not restarted since then. If the value changes, slurmctld may
	// have restarted, and a slurmctld that crashed may have lost dynamic nodes that still run jobs. It is zero for a
	// moment after a start.
	CountersSince time.Time
	// RPCs counts the requests that slurmctld has served, by Slurm's message type.
	RPCs map[string]int64
	// Jobs since CountersSince.
	JobsSubmitted, JobsStarted, JobsCompleted, JobsCanceled, JobsFailed int64
	// Current jobs, as slurmctld last counted them.
	JobsPending, JobsRunning int64
}
