package cluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
)

// Before the old slurmctld is stopped, the configuration that a validation run has accepted is recorded in a ConfigMap
// of its own. If the spec, a reference or a quota changes when the old slurmctld is gone, the record is what this
// operator's slurmctld starts with: without it there would be none until somebody corrects the spec. It is removed when
// this operator's StatefulSet exists.

// annotationClaim is the PVC with the saved state.
const annotationClaim = "controller." + slinkyv1beta1.GroupName + "/state-claim"

// accepted is what slurmctld starts with when the old one is gone.
type accepted struct {
	*promoted
	// claim is the PVC with the saved state.
	claim string
}

// observeAccepted reads what was accepted, until this operator's StatefulSet exists.
func (r *Reconciler) observeAccepted(ctx context.Context, scope *scope) error {
	if scope.hasOwnSet() {
		return nil
	}
	record, err := reference.Object(ctx, r.Client, scope.controller.Namespace, naming.TakeOver(scope.controller.Name),
		&corev1.ConfigMap{})
	if err != nil || record == nil || !metav1.IsControlledBy(record, scope.controller) {
		return err
	}
	if found := promotedOf(record.Data, record.Annotations); found.user != nil && found.image != "" {
		scope.accepted = &accepted{found, record.Annotations[annotationClaim]}
	}
	return nil
}

// recordAccepted records what a validation run has accepted.
func (r *Reconciler) recordAccepted(ctx context.Context, scope *scope, plan *plan) error {
	record, err := promotedConfigMap(scope, plan)
	if err != nil {
		return err
	}
	record.WithName(naming.TakeOver(scope.controller.Name)).
		WithAnnotations(map[string]string{annotationClaim: scope.claim})
	return r.Children.Apply(ctx, scope.controller, record, &corev1.ConfigMap{})
}

// forgetAccepted removes the record if the user no longer asks for the takeover and the old slurmctld runs: the other
// operator may stop and start it again.
func (r *Reconciler) forgetAccepted(ctx context.Context, scope *scope) error {
	if scope.accepted == nil || clusterconf.AsksForTakeOver(scope.controller) || !scope.runsForeign() {
		return nil
	}
	return r.Children.Delete(ctx, scope.controller,
		named(&corev1.ConfigMap{}, scope.controller.Namespace, naming.TakeOver(scope.controller.Name)))
}

// continuesWithAccepted reports whether slurmctld starts from what was accepted, because the old one is gone or exits.
func (s *scope) continuesWithAccepted() bool { return s.accepted != nil && !s.runsForeign() }

// runsForeign reports whether a slurmctld of another operator runs, and is not about to exit.
func (s *scope) runsForeign() bool {
	return s.statefulSet != nil && !s.hasOwnSet() || slices.ContainsFunc(s.foreignPods(),
		func(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil })
}

// committed returns the plan that ends a takeover, if the old slurmctld is gone or exits: whatever the spec says now,
// slurmctld starts with what was accepted. Only a lost state prevents it.
func committed(scope *scope) (next plan, isCommitted bool) {
	if !scope.isForeign() || !scope.continuesWithAccepted() {
		return plan{}, false
	}
	if problem := stateProblem(scope); problem != nil {
		return keep(scope, plan{problem: problem}), true
	}
	return plan{
		candidate: scope.accepted.candidate(candidate{}), stage: promote, image: scope.accepted.image, commits: true,
		endValidation: scope.validation != nil,
	}, true
}
