package cluster

import (
	"context"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// restore makes slurmctld start again with the configuration and the image in force, if its StatefulSet was deleted or
// scaled in. No mistake in the spec prevents that.
func (r *Reconciler) restore(ctx context.Context, scope *scope) error {
	if !scope.lacksSlurmctld() || !scope.canRestore() {
		return nil
	}
	ctx = trace.Because(ctx, "SlurmctldMissing", "slurmctld starts again with the configuration in force")
	return r.applyWorkload(ctx, scope, &plan{image: scope.promoted.image})
}

// lacksSlurmctld reports whether there is a configuration of a slurmctld, and no StatefulSet with all slurmctlds that
// this configuration names.
func (s *scope) lacksSlurmctld() bool {
	if s.promoted == nil || s.promoted.foreign || s.promoted.image == "" || s.wasExternal() {
		return false
	}
	set := s.statefulSet
	return set == nil || set.Spec.Replicas != nil && int(*set.Spec.Replicas) < max(s.promoted.hosts(), 1)
}

// hosts counts the slurmctlds in it.
func (p *promoted) hosts() (count int) {
	for entry := range p.document().All() {
		if entry.Is("SlurmctldHost") {
			count++
		}
	}
	return min(count, naming.MaxControllerPods)
}

// canRestore reports whether a slurmctld with the image in force would find the state of its jobs, and share its key
// with the slurmds that run them. If it has run, a missing PVC was deleted.
func (s *scope) canRestore() bool {
	if stateProblem(s) != nil || s.claim != "" && s.state == nil && s.controller.Status.AppliedConfigHash != "" {
		return false
	}
	if s.slurmKey == nil || s.jwtKey == nil ||
		s.promoted.slurmKey != "" && s.promoted.slurmKey != slurmconf.KeyDigest(s.slurmKey) {
		return false
	}
	state, known := s.stateRelease()
	release, err := slurm.ParseVersion(s.promoted.slurmVersion)
	return !known || err != nil || release.Understands(state)
}
