package cluster

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// A partition that the spec no longer has leaves in two steps, because slurmctld ends all jobs of a partition that it loses. First it
// takes no new jobs; when slurmctld runs with that, and after that no job is left in it, it goes.

// keepPartitions adds to a configuration the partitions that must not go yet.
func keepPartitions(scope *scope, document slurmconf.Document) (kept slurmconf.Document, leaving []string) {
	if scope.promoted == nil {
		return document, nil
	}
	earlier, err := slurmconf.Parse(scope.promoted.files[slurmConfFile])
	if err != nil {
		return document, nil // never: the operator wrote it
	}
	return slurmconf.KeepPartitions(document, earlier, func(name string) bool { return scope.emptied[name] })
}

// refreshTimeout is how long a look at the jobs may take that lets a partition go.
const refreshTimeout = 10 * time.Second

// observeLeaving finds the partitions that took no new jobs before they were seen to have none.
func (r *Reconciler) observeLeaving(ctx context.Context, scope *scope) error {
	if scope.promoted == nil || scope.nodes == nil {
		return nil
	}
	if done, _ := applied(scope, scope.promoted.hash); !done || !slices.ContainsFunc(scope.promoted.leaving, isEmpty(scope.nodes)) {
		return nil
	}
	session, connected := r.Pool.Get(slurm.Key{Namespace: scope.controller.Namespace, Name: scope.controller.Name})
	if !connected {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	snapshot, err := session.Mirror.Refresh(ctx)
	if err != nil {
		return nil // they stay, and Slurm's silence is told elsewhere
	}
	scope.emptied = map[string]bool{}
	for _, name := range scope.promoted.leaving {
		scope.emptied[name] = isEmpty(snapshot)(name)
	}
	return nil
}

// isEmpty tells which partitions have no jobs.
func isEmpty(snapshot *slurm.Snapshot) func(partition string) bool {
	return func(partition string) bool { return snapshot.Partitions[partition] == 0 }
}

// leavingMessage tells of partitions that are about to go.
func leavingMessage(names []string) string {
	if len(names) == 0 {
		return ""
	}
	list := strings.Join(names, ",")
	return "; no new jobs are taken in partition " + list + ", which goes when its last job has ended (squeue --partition=" + list + ")"
}
