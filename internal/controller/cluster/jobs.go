package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// lookTimeout is how long a look at the jobs may take.
const lookTimeout = 10 * time.Second

// observeJobs looks at the jobs anew where something waits for their end and what was last seen shows none: that may be old, above all
// when Slurm is silent.
func (r *Reconciler) observeJobs(ctx context.Context, scope *scope) error {
	session, connected := r.Pool.Get(slurm.Key{Namespace: scope.controller.Namespace, Name: scope.controller.Name})
	if !connected || !awaitsJobs(scope) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if snapshot, err := session.Mirror.Refresh(ctx); err == nil { // otherwise nothing is known, and all waits
		scope.queue = &snapshot.Queue
	}
	return nil
}

// awaitsJobs tells whether something waits for the end of jobs that, by what was last seen, may have come.
func awaitsJobs(scope *scope) bool {
	if scope.nodes == nil {
		return false
	}
	last := &scope.nodes.Queue
	return scope.leavesState() && len(last.Loads) == 0 ||
		scope.promoted != nil && slices.ContainsFunc(scope.promoted.leaving, func(partition string) bool { return isEmpty(last, partition) })
}
