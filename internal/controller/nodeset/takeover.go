package nodeset

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/status"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// Pods that another operator made for the NodeSet are left alone until this operator runs the cluster's slurmctld. They
// then get the labels of this operator's pods and are pods of an older revision: their Slurm nodes are drained, and
// they are replaced when their jobs have ended.

// takeOver labels the pods of another operator, if the cluster is taken over.
func (r *Reconciler) takeOver(ctx context.Context, scope *scope) (ctrl.Result, error) {
	allowed := scope.set.DeletionTimestamp != nil ||
		scope.controller != nil && clusterconf.MayTakeOver(scope.controller)
	if !allowed {
		scope.problem = status.Problem(slinkyv1beta1.ReasonNotTakenOver,
			"another operator made %d pods of this NodeSet, such as %s, and nothing is changed until the cluster is taken "+
				"over: see the conditions of Controller %s, and its annotation %s", len(scope.foreign),
			scope.foreign[0].Name, scope.set.Spec.ControllerRef.Name, slinkyv1beta1.AnnotationTakeOver)
		return retry.After(child.RetryRefusal, r.report(ctx, scope, &plan.Plan{}, outcome{}))
	}
	ctx = trace.Because(ctx, "TakeOver", "the user asked for the takeover of this cluster")
	err := inParallel(ctx, len(scope.foreign), parallelUpdates, func(index int) error {
		pod := scope.foreign[index]
		return r.patchMetadata(ctx, scope, pod, desired.PodLabels(scope.set, pod))
	})
	return retry.After(minEventDelay, err)
}
