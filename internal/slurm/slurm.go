// Package slurm is Slurm as the operator sees it: what a cluster is made of, how to ask for it, and what is known of it now.
//
// The story has four parts. The types (Node, Job, Partition, …) are plain values with predicates that are pure and fail
// closed: what they cannot be sure of, they deny. A Client asks one cluster, and every answer that is not plain success is
// an *Error of a Kind. A Mirror polls one cluster for everybody and publishes immutable snapshots, with the time since
// when each is known to hold. A Pool keeps one session, a client and its mirror, for each cluster, and says how it does.
//
// Two rules guard running jobs. First, a node is gone only when it is missing from a complete list of all nodes: Slurm
// answers a question about one missing node with a success that carries an error without a number, and nobody could tell
// that from other trouble. Second, a node is vacant only when its record shows it drained and no job holds it: the record
// of a node whose job is suspended can look drained (see Snapshot.Vacant).
package slurm

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Version is a release of Slurm, such as 26.05.5. Versions are compared with Compare.
type Version struct {
	Major, Minor, Micro int
}

// ParseVersion reads a release as Slurm prints it. What follows the third number, such as -rc1, is ignored.
func ParseVersion(release string) (Version, error) {
	var numbers [3]int
	fields := strings.SplitN(release, ".", 3)
	if len(fields) < 2 {
		return Version{}, fmt.Errorf("%q is not a Slurm release", release)
	}
	for i, field := range fields {
		digits := field[:len(field)-len(strings.TrimLeft(field, "0123456789"))]
		number, err := strconv.Atoi(digits)
		if err != nil || (i < 2 && digits != field) {
			return Version{}, fmt.Errorf("%q is not a Slurm release", release)
		}
		numbers[i] = number
	}
	return Version{numbers[0], numbers[1], numbers[2]}, nil
}

// String is the release as Slurm prints it.
func (v Version) String() string { return fmt.Sprintf("%d.%02d.%d", v.Major, v.Minor, v.Micro) }

// Compare orders versions by age, the older first.
func (v Version) Compare(other Version) int {
	return cmp.Or(cmp.Compare(v.Major, other.Major), cmp.Compare(v.Minor, other.Minor), cmp.Compare(v.Micro, other.Micro))
}

// A Partition is a queue of jobs and the nodes that serve it.
type Partition struct {
	Name string
	// State is what Slurm says of it: UP, DOWN, DRAIN or INACTIVE.
	State string
	// Nodes is the hostlist expression of its nodes.
	Nodes     string
	NodeCount int
	CPUs      int
}

// A Reservation keeps nodes for some users or for maintenance.
type Reservation struct {
	Name  string
	Start time.Time
	End   time.Time
	// Nodes is a hostlist expression; ALL stands for all nodes when a reservation is made.
	Nodes string
	Users []string
	Flags []string
}

// A Ping is what slurmrestd says about its way to slurmctld.
type Ping struct {
	// Controller is the host name of the slurmctld that answers.
	Controller string
	// Primary tells whether it is the first of the configured ones.
	Primary bool
	// Version is slurmrestd's.
	Version Version
	// Cluster is the ClusterName of slurmrestd's configuration.
	Cluster string
}

// A Diag is what slurmctld counts about itself.
type Diag struct {
	// Now is slurmctld's clock when it answered.
	Now time.Time
	// CountersSince is when its counters began: when slurmctld started or, later than that, when the counters were reset,
	// by a person or by slurmctld itself once a day. So slurmctld has not restarted since then. When this has changed, it
	// may have restarted in between, and a slurmctld that crashed may have forgotten dynamic nodes that still run jobs. It
	// is zero for a moment after a start.
	CountersSince time.Time
	// RPCs counts the requests that slurmctld has served, by Slurm's name of their type.
	RPCs map[string]int64
	// The jobs of the counted time.
	JobsSubmitted, JobsStarted, JobsCompleted, JobsCanceled, JobsFailed int64
	// The jobs as last counted.
	JobsPending, JobsRunning int64
}
