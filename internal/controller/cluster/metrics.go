package cluster

import (
	"context"
	"slices"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// metrics tells whether slurmctld's own metrics are on: where they are wanted, and Slurm has them. Whoever reaches slurmctld may
// read them, and they name users, so they are never on unasked.
func metrics(scope *scope) bool { return wantsMetrics(scope) && !metricsWait(scope) }

func wantsMetrics(scope *scope) bool {
	return scope.controller.Spec.Metrics.Enabled && hasHTTP(scope.slurmVersion)
}

// metricsWait tells whether metrics are wanted and must not be turned on yet. slurmctld hands its configuration to all slurmds, and
// one that is older and does not know the key ends, with all its jobs: after slurmctld was upgraded, the nodes have to follow first.
// What nobody knows of nodes counts as old: before the operator has reached Slurm, and after slurmctld started, which forgets the
// releases of its slurmds until they register again.
func metricsWait(scope *scope) bool {
	if !wantsMetrics(scope) || scope.promoted == nil {
		return false
	}
	document, err := slurmconf.Parse(scope.promoted.files[slurmConfFile])
	if _, on := document.Get("MetricsType"); err == nil && on {
		return false
	}
	return scope.nodes == nil || slices.ContainsFunc(scope.nodes.Nodes, func(node *slurm.Node) bool {
		return !hasHTTP(node.Version) && !isAbsent(node)
	})
}

// isAbsent tells whether a node has no slurmd that slurmctld has heard of, and so no job.
func isAbsent(node *slurm.Node) bool {
	away := node.State == slurm.StateDown || node.State == slurm.StateFuture || node.Flags.Has(slurm.FlagPoweredDown)
	return away && node.Version == ""
}

// hasHTTP tells whether the daemons of a release answer HTTP: health, and metrics.
func hasHTTP(release string) bool {
	version, err := slurm.ParseVersion(release)
	return err == nil && version.Compare(slurm.Version{Major: 25, Minor: 11}) >= 0
}

// observeNodes takes what is known of the nodes.
func (r *Reconciler) observeNodes(_ context.Context, scope *scope) error {
	if session, connected := r.Pool.Get(slurm.Key{Namespace: scope.controller.Namespace, Name: scope.controller.Name}); connected {
		scope.nodes = session.Mirror.Snapshot()
	}
	return nil
}
