package token

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/retry"
)

// Name is the controller's name, in logs, metrics and events.
const Name = "token"

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=tokens;controllers;accountings,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=tokens/status,verbs=patch
// +kubebuilder:rbac:groups=core,resources=secrets,verbs=get;list;watch;create;patch;delete

// SetupWithManager watches Tokens, their Secrets and the keys that sign them, and Controllers and Accountings: a policy
// or the key that it is for may have changed.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	spec := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(manager).
		Named(Name).
		WithOptions(retry.Options(Name, "Token", r.NewQueue)).
		For(&slinkyv1beta1.Token{}).
		Owns(&corev1.Secret{}).
		Watches(&corev1.Secret{}, index.Handler(r.Client, index.TokensBySecret)).
		Watches(&slinkyv1beta1.Controller{}, handler.EnqueueRequestsFromMapFunc(r.tokensBeside), spec).
		Watches(&slinkyv1beta1.Accounting{}, handler.EnqueueRequestsFromMapFunc(r.tokensBeside), spec).
		Complete(r)
}

// tokensBeside returns requests for all Tokens in the namespace of an object.
func (r *Reconciler) tokensBeside(ctx context.Context, object client.Object) []reconcile.Request {
	var tokens slinkyv1beta1.TokenList
	if err := r.Client.List(ctx, &tokens, client.InNamespace(object.GetNamespace())); err != nil {
		log.FromContext(ctx).Error(err, "Listing Tokens") // the cache does not fail
		return nil
	}
	var requests []reconcile.Request
	for i := range tokens.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&tokens.Items[i])})
	}
	return requests
}
