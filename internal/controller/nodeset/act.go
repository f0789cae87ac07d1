package nodeset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/sshd"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// An outcome is what came of carrying out a plan.
type outcome struct {
	// failure is what failed, and is tried again.
	failure error
	// again says that something was overtaken by events, and is to be decided again.
	again bool
	// unreserved is why there is no reservation for a scheduled update.
	unreserved string
	// placement is how the nodes stand in Slurm's topology; nil when Slurm was not asked.
	placement *placement
}

// A step is a part of what a plan asks for.
type step func(context.Context, *scope, *plan.Plan, *outcome) error

// act carries out a plan. Each step stands on its own: what fails in one is reported, and keeps no other from being done, unless
// that one needs it. Protection comes first, because jobs depend on it.
func (r *Reconciler) act(ctx context.Context, scope *scope, next *plan.Plan) outcome {
	var result outcome
	unprotected := r.protectPods(ctx, scope, next)
	unprepared := r.prepare(ctx, scope)
	failures := []error{unprotected, unprepared}
	do := func(steps ...step) {
		for _, step := range steps {
			failures = append(failures, step(ctx, scope, next, &result))
		}
	}
	if unprotected == nil {
		do(r.undrain)
	}
	do(r.clearReasons, r.drain, r.remove, r.prune)
	if unprepared == nil {
		do(r.create)
	}
	do(r.markPods, r.describeNodes, r.placeNodes, r.keepPins, r.keepClaims, r.reserve)
	result.again = result.again || !timely(ctx)
	if result.failure = errors.Join(failures...); result.failure == nil {
		result.failure = r.finish(ctx, scope)
	}
	return result
}

// prepare makes what pods need before there are any.
func (r *Reconciler) prepare(ctx context.Context, scope *scope) error {
	if scope.set.DeletionTimestamp != nil {
		return nil
	}
	if err := r.patchFinalizer(ctx, scope.set, controllerutil.AddFinalizer); err != nil {
		return err
	}
	if err := r.applyChildren(ctx, scope); err != nil {
		return err
	}
	if err := r.keepHostKeys(ctx, scope.set); err != nil {
		return err
	}
	return r.keepRevision(ctx, scope)
}

// applyChildren makes what all pods share.
func (r *Reconciler) applyChildren(ctx context.Context, scope *scope) error {
	set := scope.set
	if scope.controller != nil {
		// The Service is for all NodeSets of a Controller, and goes with it.
		if err := r.Children.Apply(ctx, scope.controller, worker.HostsService(scope.controller), &corev1.Service{}); err != nil {
			return err
		}
	}
	return r.Children.ApplyBudget(ctx, set, set.Name, worker.DisruptionBudget(set))
}

// keepHostKeys makes the host keys of the set's sshds, once. They belong to nobody: users know the nodes by them.
func (r *Reconciler) keepHostKeys(ctx context.Context, set *slinkyv1beta1.NodeSet) error {
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

// finish lets a NodeSet that is being deleted go, once its pods have, or are to stay.
func (r *Reconciler) finish(ctx context.Context, scope *scope) error {
	if scope.set.DeletionTimestamp == nil || (len(scope.pods) > 0 && !orphaning(scope.set)) {
		return nil
	}
	r.expectations.forget(scope.set.UID)
	r.witnesses.forget(scope.set.UID)
	r.reservations.forget(scope.set.UID)
	r.announceRest(scope)
	r.Metrics.forget(scope.set)
	return r.patchFinalizer(ctx, scope.set, controllerutil.RemoveFinalizer)
}

// patchFinalizer adds or removes the finalizer, and writes nothing else.
func (r *Reconciler) patchFinalizer(ctx context.Context, set *slinkyv1beta1.NodeSet, change func(client.Object, string) bool) error {
	after := set.DeepCopy()
	if !change(after, slinkyv1beta1.FinalizerDrain) {
		return nil
	}
	patch := client.MergeFromWithOptions(set, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, after, patch, client.FieldOwner(naming.ManagedBy)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the finalizer: %w", err)
	}
	return nil
}

// undrain lifts drains of ours.
func (r *Reconciler) undrain(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	return r.updateNodes(ctx, scope, next, plan.Undrain, func(string) slurm.NodeUpdate {
		return slurm.NodeUpdate{State: slurm.Undrain, Reason: slurm.NoReason}
	})
}

// clearReasons replaces reasons of ours that have outlived their drains.
func (r *Reconciler) clearReasons(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	return r.updateNodes(ctx, scope, next, plan.ClearReason, func(string) slurm.NodeUpdate {
		return slurm.NodeUpdate{Reason: slurm.NoReason}
	})
}

// drain makes Slurm give nodes no more jobs.
func (r *Reconciler) drain(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	return r.updateNodes(ctx, scope, next, plan.Drain, func(why string) slurm.NodeUpdate {
		return slurm.NodeUpdate{State: slurm.Drain, Reason: why}
	})
}

// updateNodes carries out all actions of a kind, with one request for each reason. What was seen of the nodes before a request
// proves nothing any more if the request succeeded, or if it may have opened them.
func (r *Reconciler) updateNodes(ctx context.Context, scope *scope, next *plan.Plan, kind plan.Kind, update func(why string) slurm.NodeUpdate) error {
	byReason := map[string][]plan.Action{}
	for _, action := range next.Of(kind) {
		byReason[action.Why] = append(byReason[action.Why], action)
	}
	var failures []error
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		actions := byReason[reason]
		nodes := nodesOf(actions)
		answered, err := scope.session.UpdateNodes(trace.Because(ctx, actions[0].Cause, reason), nodes, update(reason))
		if err == nil || kind == plan.Undrain {
			r.witnesses.acknowledged(scope, nodes, answered)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("making Slurm %s %d nodes: %w", kind, len(nodes), err))
			continue
		}
		for _, action := range actions {
			r.done(scope, action, action.Pod.Name, action.Node)
		}
	}
	return errors.Join(failures...)
}

// remove deletes pods. Those that the cache shows as they were before we wrote to them wait for their event: the API server
// would refuse.
func (r *Reconciler) remove(ctx context.Context, scope *scope, next *plan.Plan, result *outcome) error {
	var removals []plan.Action
	for _, action := range next.Of(plan.Delete) {
		if !r.expectations.outrun(scope.set.UID, scope.byName[action.Pod.Name]) {
			removals = append(removals, action)
		}
	}
	err := evenly(ctx, len(removals), podsAtOnce, func(index int) error { return r.delete(ctx, scope, removals[index]) })
	if errors.Is(err, errHeld) || apierrors.IsConflict(err) {
		result.again = true // nothing is wrong: what was decided no longer holds
		return nil
	}
	return err
}

// errHeld says that a pod that was to be deleted may not be any more.
var errHeld = errors.New("what is known of Slurm has changed since the plan was made")

// delete deletes one pod. It is the only place that does. The deletion rule is asked again, with what is known now, and the
// API server refuses when anything about the pod has changed since it was looked at.
func (r *Reconciler) delete(ctx context.Context, scope *scope, action plan.Action) error {
	latest := scope.snapshot
	latest.Now = r.Clock.Now()
	if scope.session != nil {
		latest.Answers, latest.Slurm = scope.session.Status().Reachable, scope.session.Mirror.Snapshot()
		latest.DrainedSince = r.witnesses.look(scope, latest.Slurm, action.Node)
	}
	if hold := latest.Release(action.Pod); hold.Kind != plan.NotHeld {
		return fmt.Errorf("deleting pod %s: %w: %s", action.Pod.Name, errHeld, hold.Why)
	}
	pod := scope.byName[action.Pod.Name]
	ctx = trace.Because(trace.With(ctx, "slurmNode", action.Node), action.Cause, action.Why)
	if err := r.settleClaims(ctx, scope, pod, action.WithClaims); err != nil {
		return err
	}
	preconditions := client.Preconditions{UID: new(types.UID(action.Pod.UID)), ResourceVersion: new(pod.ResourceVersion)}
	switch err := r.Client.Delete(ctx, &corev1.Pod{ObjectMeta: pod.ObjectMeta}, preconditions); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return errors.Join(fmt.Errorf("deleting pod %s: %w", pod.Name, err), r.settleClaims(ctx, scope, pod, false))
	default:
		r.Metrics.deleted(scope, action)
		r.done(scope, action, action.Pod.Name, action.Node)
	}
	r.expectations.expectDeleted(scope.set.UID, pod.UID, latest.Now)
	return nil
}

// prune removes records from Slurm.
func (r *Reconciler) prune(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	actions := next.Of(plan.Prune)
	if len(actions) == 0 {
		return nil
	}
	ctx = trace.Because(ctx, actions[0].Cause, actions[0].Why)
	if err := scope.session.DeleteNodes(ctx, nodesOf(actions)); err != nil {
		return fmt.Errorf("removing the records of %d nodes from Slurm: %w", len(actions), err)
	}
	for _, action := range actions {
		r.done(scope, action, "", action.Node)
	}
	return nil
}

// nodesOf are the Slurm nodes of actions.
func nodesOf(actions []plan.Action) []string {
	nodes := make([]string, len(actions))
	for i := range actions {
		nodes[i] = actions[i].Node
	}
	return nodes
}
