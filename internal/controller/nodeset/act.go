package nodeset

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/shared"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/sshd"
)

// An outcome is the result of carrying out a plan.
type outcome struct {
	// failure is the errors of steps, which are retried.
	failure error
	// again asks for another reconcile soon, because the state changed meanwhile or time ran out.
	again bool
	// unreserved says why there is no reservation for a scheduled update.
	unreserved string
	// collisions is set if the name of the new revision was taken.
	collisions *int32
	// describe is when to describe Slurm nodes that were left for later; zero for never.
	describe time.Time
	// placement is the result of updating Slurm's topology; nil if Slurm was not asked.
	placement *placement
}

// A step carries out one part of a plan.
type step func(context.Context, *scope, *plan.Plan, *outcome) error

// act carries out a plan. A step that fails does not prevent the others, unless they depend on it. Protection comes
// first, because jobs depend on it.
func (r *Reconciler) act(ctx context.Context, scope *scope, next *plan.Plan) outcome {
	var result outcome
	unprotected := r.protectPods(ctx, scope, next)
	unprepared := r.prepare(ctx, scope, &result)
	failures := []error{unprotected, unprepared}
	do := func(steps ...step) {
		for _, step := range steps {
			failures = append(failures, step(ctx, scope, next, &result))
		}
	}
	if unprotected == nil {
		do(r.undrain)
	}
	do(r.clearReasons, r.drain, r.giveUp, r.powerNodes, r.mark, r.remove, r.prune, r.withdraw)
	if unprepared == nil {
		do(r.requestCapacity, r.create)
	}
	do(r.updatePodConditions, r.describeNodes, r.placeNodes, r.writePins, r.reconcilePVCs, r.reserve)
	result.again = result.again || !hasTime(ctx)
	if result.failure = errors.Join(failures...); result.failure == nil && !hasOpenRecords(scope, next) {
		result.failure = r.finish(ctx, scope)
	}
	return result
}

// prepare creates what pods need.
func (r *Reconciler) prepare(ctx context.Context, scope *scope, result *outcome) error {
	if scope.set.DeletionTimestamp != nil {
		return nil
	}
	if err := r.patchFinalizers(ctx, scope.set, controllerutil.AddFinalizer, slinkyv1beta1.FinalizerDrain); err != nil {
		return err
	}
	if err := r.applyChildren(ctx, scope); err != nil {
		return err
	}
	if err := r.createHostKeys(ctx, scope.set); err != nil {
		return err
	}
	return r.storeRevision(ctx, scope, result)
}

// applyChildren applies the objects that all pods share.
func (r *Reconciler) applyChildren(ctx context.Context, scope *scope) error {
	set := scope.set
	if scope.controller != nil {
		// The Service is for all NodeSets of a Controller, and owned by it.
		if err := r.Children.Apply(ctx, scope.controller, shared.HostsService(scope.controller),
			&corev1.Service{}); err != nil {
			return err
		}
	}
	return r.Children.ApplyBudget(ctx, set, set.Name, shared.DisruptionBudget(set))
}

// createHostKeys creates the sshd host keys of the NodeSet once. They have no ownerReference: users' known_hosts files
// refer to them.
func (r *Reconciler) createHostKeys(ctx context.Context, set *slinkyv1beta1.NodeSet) error {
	if !set.Spec.SSH.Enabled {
		return nil
	}
	name := naming.NodeSetHostKeys(set.Name)
	found, err := reference.Object(ctx, r.Client, set.Namespace, name, &corev1.Secret{})
	if err != nil || found != nil {
		return err
	}
	made, err := sshd.NewHostKeys(set.Namespace, name)
	if err != nil {
		return err
	}
	return r.Children.CreateOnce(ctx, made)
}

// finish removes the finalizers of a deleted NodeSet once its pods are gone, or are orphaned.
func (r *Reconciler) finish(ctx context.Context, scope *scope) error {
	if scope.set.DeletionTimestamp == nil || (len(scope.pods) > 0 && !orphaning(scope.set)) {
		return nil
	}
	r.expectations.forget(scope.set.UID)
	r.drainHistories.forget(scope.set.UID)
	r.reservations.forget(scope.set.UID)
	r.powerUps.forget(scope.set.UID)
	r.unfinished.forget(scope.set.UID)
	r.announceRest(scope)
	r.Metrics.forget(scope.set)
	return r.patchFinalizers(ctx, scope.set, controllerutil.RemoveFinalizer, slinkyv1beta1.FinalizerDrain,
		slinkyv1beta1.FinalizerReservation)
}

// patchFinalizers adds or removes finalizers, and writes nothing else.
func (r *Reconciler) patchFinalizers(ctx context.Context, set *slinkyv1beta1.NodeSet,
	change func(client.Object, string) bool, finalizers ...string) error {
	after, changed := set.DeepCopy(), false
	for _, finalizer := range finalizers {
		changed = change(after, finalizer) || changed
	}
	if !changed {
		return nil
	}
	patch := client.MergeFromWithOptions(set, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, after, patch,
		client.FieldOwner(naming.ManagedBy)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the finalizer: %w", err)
	}
	return nil
}
