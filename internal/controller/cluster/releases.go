package cluster

import (
	"context"
	"slices"
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// slurmctld hands its configuration to all slurmds, and one that is older and does not know a key ends, with all its jobs. So after
// slurmctld was upgraded, keys that came with the new release wait until the nodes have followed.

// holdBack takes out of a configuration the keys that are to wait.
func holdBack(scope *scope, document slurmconf.Document) (kept slurmconf.Document, held []string) {
	var inForce slurmconf.Document
	switch {
	case scope.promoted != nil:
		inForce = scope.promoted.document()
	case !scope.hasSlurmds():
		return document, nil
	}
	return slurmconf.HoldBack(document, inForce, func(release string) bool {
		age, known := compare(scope.slurmVersion, release)
		refuses := known && age < 0 // and says so better than we could
		return !refuses && scope.hasOlderNodes(release)
	})
}

// hasSlurmds tells whether slurmds run, as they do before the first configuration when slurmctld is restored.
func (s *scope) hasSlurmds() bool {
	return slices.ContainsFunc(s.nodeSets, func(set slinkyv1beta1.NodeSet) bool { return set.Status.ReadyReplicas > 0 })
}

// hasOlderNodes tells whether a slurmd may be older than a release. What nobody knows of nodes counts as older: while Slurm does
// not answer, and after slurmctld started, which forgets the releases of its slurmds until they register again.
func (s *scope) hasOlderNodes(release string) bool {
	return s.nodes == nil || slices.ContainsFunc(s.nodes.Nodes, func(node *slurm.Node) bool {
		if age, known := compare(node.Version, release); known {
			return age < 0
		}
		return !isAbsent(node)
	})
}

// isAbsent tells whether a node has no slurmd that slurmctld has heard of, and so no job.
func isAbsent(node *slurm.Node) bool {
	away := node.State == slurm.StateDown || node.State == slurm.StateFuture || node.Flags.Has(slurm.FlagPoweredDown)
	return away && node.Version == ""
}

// compare orders a release of a daemon, if it is known, by another one.
func compare(release, other string) (age int, known bool) {
	first, err := slurm.ParseVersion(release)
	if err != nil {
		return 0, false
	}
	second, err := slurm.ParseVersion(other)
	return first.Compare(second), err == nil
}

// heldMessage tells of keys that wait.
func heldMessage(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return "; left out until no slurmd is left that does not know it, and would end at it with its jobs: " + strings.Join(keys, ", ") +
		" (sinfo --format='%n %v' shows the releases)"
}

// observeNodes takes what is known of the nodes, as long as Slurm answers: afterwards others may have come.
func (r *Reconciler) observeNodes(_ context.Context, scope *scope) error {
	session, connected := r.Pool.Get(slurm.Key{Namespace: scope.controller.Namespace, Name: scope.controller.Name})
	if connected && session.Status().Reachable {
		scope.nodes = session.Mirror.Snapshot()
	}
	return nil
}
