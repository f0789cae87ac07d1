package nodeset

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// remove deletes pods, unless they are stale in the cache: the API server would refuse.
func (r *Reconciler) remove(ctx context.Context, scope *scope, next *plan.Plan, result *outcome) error {
	removals := r.onCurrent(scope, next.Of(plan.Delete))
	err := inParallel(ctx, len(removals), parallelPods, func(index int) error {
		// The deletion rule is evaluated when the request may be sent, and not before it waits for that.
		return r.Window.Do(ctx, func() error { return r.delete(ctx, scope, removals[index]) })
	})
	if errors.Is(err, errHeld) || apierrors.IsConflict(err) {
		result.again = true // not an error: the decision is outdated
		return nil
	}
	return err
}

// errHeld means that a pod must not be deleted any more.
var errHeld = errors.New("what is known of Slurm has changed since the plan was made")

// delete deletes one pod, and nothing else does. It evaluates the deletion rule again with the latest snapshot, and the
// API server refuses if the pod has changed since it was read.
func (r *Reconciler) delete(ctx context.Context, scope *scope, action plan.Action) error {
	latest := scope.snapshot
	latest.Now = r.Clock.Now()
	if scope.session != nil {
		latest.Answers, latest.Slurm = scope.session.Status().Reachable, scope.session.Mirror.Snapshot()
		latest.DrainedSince = r.drainHistories.observe(scope, latest.Slurm, action.SlurmNode)
	}
	if hold := latest.Release(action.Pod); hold.Kind != plan.NotHeld {
		return fmt.Errorf("deleting pod %s: %w: %s", action.Pod.Name, errHeld, hold.Why)
	}
	pod := scope.byName[action.Pod.Name]
	ctx = trace.Because(trace.With(ctx, "slurmNode", action.SlurmNode), action.Cause, action.Why)
	if err := r.updatePVCOwners(ctx, scope, pod, action.ScaledIn); err != nil {
		return err
	}
	preconditions := client.Preconditions{
		UID: new(types.UID(action.Pod.UID)), ResourceVersion: new(pod.ResourceVersion),
	}
	switch err := r.Client.Delete(ctx, &corev1.Pod{ObjectMeta: pod.ObjectMeta}, preconditions); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return errors.Join(fmt.Errorf("deleting pod %s: %w", pod.Name, err), r.updatePVCOwners(ctx, scope, pod, false))
	default:
		r.Metrics.deleted(scope, action)
		r.done(scope, action, action.Pod.Name, action.SlurmNode)
	}
	r.expectations.expectDeleted(scope.set.UID, pod.UID, latest.Now)
	return nil
}
