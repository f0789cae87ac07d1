package restapi

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

func (r *Reconciler) act(ctx context.Context, scope *scope, plan plan) error {
	if plan.children == nil {
		return nil
	}
	owner, children := scope.restAPI, plan.children
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: naming.RestAPI(owner.Name)},
	}
	if err := r.Children.TakeOver(ctx, owner, deployment, clusterconf.MayTakeOver(scope.controller)); err != nil {
		return err
	}
	if err := r.Children.Apply(ctx, owner, children.configMap, &corev1.ConfigMap{}); err != nil {
		return err
	}
	if err := r.Children.Apply(ctx, owner, children.trust, &corev1.ConfigMap{}); err != nil {
		return err
	}
	if children.certificate != nil {
		if err := r.Children.Apply(ctx, owner, children.certificate, &corev1.Secret{}); err != nil {
			return err
		}
	}
	if err := r.Children.Apply(ctx, owner, children.service, &corev1.Service{}); err != nil {
		return err
	}
	if err := r.Children.Apply(ctx, owner, children.deployment, deployment); err != nil {
		return err
	}
	scope.deployment = deployment
	return r.Children.ApplyBudget(ctx, owner, naming.RestAPI(owner.Name), children.budget)
}
