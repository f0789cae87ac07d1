package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// jobsTimeout bounds a refresh of what is known of jobs.
const jobsTimeout = 10 * time.Second

// observeJobs reads the jobs again when something waits for their end and what is known shows none: that may be stale, above all
// when Slurm does not answer.
func (r *Reconciler) observeJobs(ctx context.Context, scope *scope) error {
	session, connected := r.Pool.Get(slurm.Key{Namespace: scope.controller.Namespace, Name: scope.controller.Name})
	if !connected || !awaitsJobs(scope) {
		return nil
	}
	refresh, cancel := context.WithTimeout(ctx, jobsTimeout)
	defer cancel()
	snapshot, err := session.Mirror.Refresh(refresh)
	if err != nil {
		return nil // nothing is known, and everything waits; the session reports why
	}
	scope.queue = queueOf(ctx, session, scope, snapshot)
	return nil
}

// queueOf is the jobs of a snapshot. When there were too many to list and a partition may be removed, they are counted one by one.
// It is nil when what is known proves nothing.
func queueOf(ctx context.Context, session *slurm.Session, scope *scope, snapshot *slurm.Snapshot) *slurm.Queue {
	switch {
	case !snapshot.Partial:
		return &snapshot.Queue
	case leavesPartitions(scope):
		if inForce, _ := applied(scope, scope.promoted.hash); !inForce {
			return nil
		}
		if queue, err := session.CountJobs(ctx); err == nil { // otherwise every partition stays
			return &queue
		}
		return nil
	case len(snapshot.Loads) == 0 && snapshot.Running+snapshot.Unplaced > 0: // a job holds a node, and it is not known which one
		return nil
	default:
		return &snapshot.Queue
	}
}

// awaitsJobs reports whether something waits for the end of jobs that, by what is known, may have come.
func awaitsJobs(scope *scope) bool {
	if scope.nodes == nil {
		return false
	}
	last := &scope.nodes.Queue
	return scope.leavesState() && len(last.Loads) == 0 ||
		leavesPartitions(scope) && slices.ContainsFunc(scope.promoted.leaving, func(partition string) bool { return isEmpty(last, partition) })
}

// leavesPartitions reports whether partitions wait for their last jobs to end.
func leavesPartitions(scope *scope) bool {
	return scope.promoted != nil && len(scope.promoted.leaving) > 0
}
