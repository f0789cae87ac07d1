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
	scope.jobFree = !isBusy(snapshot)
	scope.queue = queueOf(ctx, session, scope, snapshot)
	return nil
}

// isBusy reports whether a job held a node when a snapshot was taken, or was cleaned up on an unknown one.
func isBusy(snapshot *slurm.Snapshot) bool {
	return len(snapshot.Loads) > 0 || snapshot.Running > 0 || snapshot.Unplaced > 0
}

// queueOf returns the jobs of a snapshot by partition. If there are too many to list and a partition may be removed,
// they are counted one by one. It returns nil if they are not known.
func queueOf(ctx context.Context, session *slurm.Session, scope *scope, snapshot *slurm.Snapshot) *slurm.Queue {
	switch {
	case !snapshot.Partial:
		return &snapshot.Queue
	case !hasLeavingPartitions(scope) || !scope.hasApplied():
		return nil
	}
	queue, err := session.CountJobs(ctx)
	if err != nil {
		return nil // every partition is kept
	}
	return &queue
}

// awaitsJobs reports whether something waits for jobs that have ended according to the snapshot.
func awaitsJobs(scope *scope) bool {
	if scope.nodes == nil {
		return false
	}
	last := &scope.nodes.Queue
	return (scope.persistenceChanged() || scope.promoted.isClosed()) && !isBusy(scope.nodes) ||
		hasLeavingPartitions(scope) &&
			slices.ContainsFunc(scope.promoted.leaving, func(partition string) bool { return isEmpty(last, partition) })
}

// hasLeavingPartitions reports whether partitions wait to be removed until their last jobs have ended.
func hasLeavingPartitions(scope *scope) bool {
	return scope.promoted != nil && len(scope.promoted.leaving) > 0
}
