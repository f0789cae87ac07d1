package accounting

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/naming"
)

func (r *Reconciler) act(ctx context.Context, scope *scope, plan plan) error {
	if err := errors.Join(r.correct(ctx, scope, plan), r.shortenTermination(ctx, scope)); err != nil {
		return err
	}
	owner := scope.accounting
	name := metav1.ObjectMeta{Namespace: owner.Namespace, Name: naming.Accounting(owner.Name)}
	if plan.makesWay(scope) {
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
	// The template gets an older image only when the pod that could still convert the database is being deleted.
	later := scope.laterPod(plan.children.image)
	if later != nil {
		if deleted, err := r.Children.Replace(ctx, later, scope.exitLimit(later)); err != nil || !deleted {
			return err
		}
	}
	scope.statefulSet = &appsv1.StatefulSet{}
	if err := r.Children.Apply(ctx, owner, plan.children.statefulSet, scope.statefulSet); err != nil {
		return err
	}
	if err := r.admitsFirst(ctx, scope); err != nil {
		return err
	}
	pod := replaceable(scope)
	if pod == nil || pod == later {
		return nil
	}
	if err := r.Children.AdmitsInPlaceOf(ctx, scope.statefulSet, pod); err != nil {
		return err
	}
	_, err := r.Children.Replace(ctx, pod, scope.exitLimit(pod))
	return err
}
