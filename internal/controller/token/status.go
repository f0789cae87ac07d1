package token

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	applyv1beta1 "github.com/slurm-operator/slurm-operator/api/applyconfiguration/api/v1beta1"
	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

func (r *Reconciler) report(ctx context.Context, scope *scope, plan plan, failure error) error {
	if failure != nil {
		plan.verdict = status.Progressing(slinkyv1beta1.ReasonReconcileError, "%v", failure)
	}
	conditions := status.NewConditions(scope.token.Generation, scope.token.Status.Conditions, metav1.NewTime(scope.now))
	conditions.Summarize(plan.verdict)
	if valid := plan.token != nil && scope.now.Before(plan.token.Expires) && failure == nil; valid {
		conditions.Available(true, "the Secret holds a valid token")
	} else {
		conditions.Available(false, "the Secret holds no valid token")
	}
	newStatus := applyv1beta1.TokenStatus().WithObservedGeneration(scope.token.Generation)
	newStatus.Conditions = conditions.Configuration()
	if plan.token != nil && failure == nil {
		newStatus.WithIssuedAt(metav1.NewTime(plan.token.Issued)).WithExpiresAt(metav1.NewTime(plan.token.Expires))
	}
	return r.Status.Write(ctx, scope.token, conditions, newStatus)
}
