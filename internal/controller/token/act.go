package token

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/naming"
)

func (r *Reconciler) act(ctx context.Context, scope *scope, plan plan) error {
	if plan.token == nil {
		return nil
	}
	if plan.replace {
		// An immutable Secret cannot be changed, only re-created.
		old := &corev1.Secret{}
		old.Namespace, old.Name = scope.token.Namespace, naming.TokenSecret(scope.token).Name
		if err := r.Children.Delete(ctx, scope.token, old); err != nil {
			return err
		}
	}
	if err := r.Children.Apply(ctx, scope.token, secret(scope.token, plan.token.Text), &corev1.Secret{}); err != nil {
		return err
	}
	for _, former := range scope.former {
		if err := r.Children.Delete(ctx, scope.token, former); err != nil {
			return err
		}
	}
	return nil
}
