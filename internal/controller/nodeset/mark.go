package nodeset

import (
	"context"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// mark sets the operator's cordon mark on pods, and removes it. The API server refuses a patch if the pod has changed
// since it was read: a user may have cordoned it meanwhile, and that cordon must stay.
func (r *Reconciler) mark(ctx context.Context, scope *scope, next *plan.Plan, result *outcome) error {
	actions := r.onCurrent(scope, slices.Concat(next.Of(plan.UnmarkPod), next.Of(plan.MarkPod)))
	var conflict atomic.Bool
	err := inParallel(ctx, len(actions), parallelUpdates, func(index int) error {
		action := actions[index]
		pod := scope.byName[action.Pod.Name]
		patch := desired.PodMark(pod, action.Kind == plan.MarkPod)
		err := r.patchMetadata(trace.Because(ctx, action.Cause, action.Why), scope, pod, patch)
		switch {
		case apierrors.IsConflict(err):
			conflict.Store(true) // not an error: the decision is outdated
			return nil
		case err == nil:
			r.done(scope, action, action.Pod.Name, action.SlurmNode)
		}
		return err
	})
	result.again = result.again || conflict.Load()
	return err
}
