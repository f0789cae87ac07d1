package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// jobsTimeout is the deadline of a refresh of the jobs.
const jobsTimeout = 10 * time.Second

// observeJobs refreshes the jobs if something waits for their end and the snapshot shows none: the snapshot may be
// stale, above all if Slurm does not answer.
func (r *Reconciler) observeJobs(ctx context.Context, scope *scope) error {
	session, connected := r.Pool.Get(slurm.Key{Namespace: scope.controller.Namespace, Name: scope.controller.Name})
	if !connected || !awaitsJobs(scope) {
		return nil
	}
	refresh, cancel := context.WithTimeout(ctx, jobsTimeout)
	defer cancel()
	snapshot, err := session.Mirror.Refresh(refresh)
	if err != nil {
		return nil // without the jobs everything waits; the session reports why
	}
	scope.queue = queueOf(ctx, session, scope, snapshot)
	return nil
}

// queueOf returns the jobs of a snapshot. If there are too many to list and a partition may be removed, they are
// counted one by one. It returns nil if the snapshot is not conclusive.
func queueOf(ctx context.Context, session *slurm.Session, scope *scope, snapshot *slurm.Snapshot) *slurm.Queue {
	switch {
	case !snapshot.Partial:
		return &snapshot.Queue
	case hasLeavingPartitions(scope):
		if inForce, _ := applied(scope, scope.promoted.hash); !inForce {
			return nil
		}
		if queue, err := session.CountJobs(ctx); err == nil { // otherwise every partition is kept
			return &queue
		}
		return nil
	case len(snapshot.Loads) == 0 && snapshot.Running+snapshot.Unplaced > 0: // a job is on an unknown Slurm node
		return nil
	default:
		return &snapshot.Queue
	}
}

// awaitsJobs reports whether something waits for jobs that have ended according to the snapshot.
func awaitsJobs(scope *scope) bool {
	if scope.nodes == nil {
		return false
	}
	last := &scope.nodes.Queue
	return (scope.persistenceChanged() || scope.promoted.isClosed()) && len(last.Loads) == 0 ||
		hasLeavingPartitions(scope) &&
			slices.ContainsFunc(scope.promoted.leaving, func(partition string) bool { return isEmpty(last, partition) })
}

// hasLeavingPartitions reports whether partitions wait to be removed until their last jobs have ended.
func hasLeavingPartitions(scope *scope) bool {
	return scope.promoted != nil && len(scope.promoted.leaving) > 0
}
