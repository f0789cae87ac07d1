package accounting

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
)

func (r *Reconciler) act(ctx context.Context, scope *scope, plan plan) error {
	owner := scope.accounting
	name := metav1.ObjectMeta{Namespace: owner.Namespace, Name: naming.Accounting(owner.Name)}
	if !plan.remove {
		err := r.Children.TakeOver(ctx, owner, &appsv1.StatefulSet{ObjectMeta: name}, scope.mayTakeOver)
		if err != nil {
			return err
		}
	}
	for _, key := range plan.keys {
		if err := r.Children.CreateOnce(ctx, key); err != nil {
			return err
		}
	}
	if plan.remove {
		return errors.Join(
			r.Children.Delete(ctx, owner, &appsv1.StatefulSet{ObjectMeta: name}),
			r.Children.Delete(ctx, owner, &corev1.Service{ObjectMeta: name}),
			r.Children.Delete(ctx, owner, &corev1.Secret{ObjectMeta: name}))
	}
	if plan.children == nil {
		return nil
	}
	if err := r.Children.Apply(ctx, owner, plan.children.secret, &corev1.Secret{}); err != nil {
		return err
	}
	if err := r.Children.Apply(ctx, owner, plan.children.service, &corev1.Service{}); err != nil {
		return err
	}
	scope.statefulSet = &appsv1.StatefulSet{}
	if err := r.Children.Apply(ctx, owner, plan.children.statefulSet, scope.statefulSet); err != nil {
		return err
	}
	if pod := outdated(scope); pod != nil && pod.DeletionTimestamp == nil {
		return r.Children.Replace(ctx, pod)
	}
	return nil
}

// outdated returns the pod that does not have the current template; nil if there is none.
func outdated(scope *scope) *corev1.Pod {
	for i := range scope.pods {
		if podtemplate.Outdated(&scope.pods[i], scope.statefulSet) {
			return &scope.pods[i]
		}
	}
	return nil
}
