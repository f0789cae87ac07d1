package token

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

func (r *Reconciler) act(ctx context.Context, scope *scope, plan plan) error {
	current := &corev1.Secret{}
	current.Namespace, current.Name = scope.token.Namespace, naming.TokenSecret(scope.token).Name
	if plan.forbidden {
		ctx = trace.Because(ctx, slinkyv1beta1.ReasonForbiddenByPolicy, plan.verdict.Message)
		return r.delete(ctx, scope, append(scope.former, current)...)
	}
	if plan.token == nil {
		return nil
	}
	if plan.replace {
		// An immutable Secret cannot be changed, only re-created: with another token, or when renewal is enabled.
		if err := r.delete(ctx, scope, current); err != nil {
			return err
		}
	}
	if err := r.Children.Apply(ctx, scope.token, secret(scope.token, plan.token.Text), &corev1.Secret{}); err != nil {
		return err
	}
	return r.delete(ctx, scope, scope.former...)
}

// delete deletes those of the Secrets that the Token owns.
func (r *Reconciler) delete(ctx context.Context, scope *scope, secrets ...*corev1.Secret) error {
	for _, secret := range secrets {
		if err := r.Children.Delete(ctx, scope.token, secret); err != nil {
			return err
		}
	}
	return nil
}
