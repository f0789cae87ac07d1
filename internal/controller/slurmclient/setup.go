package slurmclient

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// Name is the controller's name, in logs, metrics and events.
const Name = "slurmclient"

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=controllers;accountings;restapis,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=controllers/status,verbs=patch
// +kubebuilder:rbac:groups=core,resources=pods;secrets;services,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch

// SetupWithManager watches Controllers, their RestApis with Services and certificates, their keys, and the sessions
// themselves.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named(Name).
		WithOptions(retry.Options(Name, "Controller", r.NewQueue)).
		For(&slinkyv1beta1.Controller{},
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{},
				predicate.AnnotationChangedPredicate{}, configurationApplied))).
		Watches(&slinkyv1beta1.RestApi{}, index.RestAPIsByController.Referenced()).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.clusterOf)).
		Watches(&slinkyv1beta1.Accounting{}, index.Handler(r.Client, index.ControllersByAccounting),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Secret{}, index.Handler(r.Client, index.ControllersBySecret)).
		Watches(&corev1.Secret{}, index.Handler(r.Client, index.AccountingsBySecret, index.ControllersByAccounting)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfCertificate)).
		WatchesRawSource(source.Func(r.watchPool)).
		Complete(r)
}

// clusterOf returns the Controller of a RestApi's or Controller's Service.
func (r *Reconciler) clusterOf(ctx context.Context, service client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(service)
	if owner == nil {
		return nil
	}
	name := client.ObjectKey{Namespace: service.GetNamespace(), Name: owner.Name}
	switch owner.Kind {
	case "Controller":
		return []reconcile.Request{{NamespacedName: name}}
	case "RestApi":
		restAPI := &slinkyv1beta1.RestApi{}
		if err := r.Client.Get(ctx, name, restAPI); err != nil {
			return nil // it is deleted, which has its own event
		}
		return index.RestAPIsByController.Names(restAPI)
	}
	return nil
}

// clustersOfCertificate returns the Controllers of the RestApis that serve the certificate in a Secret.
func (r *Reconciler) clustersOfCertificate(ctx context.Context, secret client.Object) []reconcile.Request {
	restAPIs := &slinkyv1beta1.RestApiList{}
	if err := index.RestAPIsBySecret.List(ctx, r.Client, client.ObjectKeyFromObject(secret), restAPIs); err != nil {
		panic(err) // a missing index, which every test shows
	}
	var requests []reconcile.Request
	for i := range restAPIs.Items {
		requests = append(requests, index.RestAPIsByController.Names(&restAPIs.Items[i])...)
	}
	return requests
}

// configurationApplied passes the update that slurmctld has loaded its configuration, and with it the key that signs
// tokens: a token that it rejected before may be valid now.
var configurationApplied = predicate.Funcs{
	UpdateFunc: func(update event.UpdateEvent) bool {
		before, ok := update.ObjectOld.(*slinkyv1beta1.Controller)
		after, same := update.ObjectNew.(*slinkyv1beta1.Controller)
		return !ok || !same || before.Status.AppliedConfigHash != after.Status.AppliedConfigHash
	},
}

// countDelay is how long changes of nodes are collected before the counts are written, because they change all the
// time.
const countDelay = 2 * time.Second

// watchPool enqueues the clusters whose sessions have events: at once if the connection has changed, after countDelay
// for nodes.
func (r *Reconciler) watchPool(ctx context.Context,
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go r.Pool.Subscribe().Follow(ctx, func(events []slurm.Event) {
		clusters := map[slurm.Key]bool{} // whether its connection has changed
		for _, event := range events {
			clusters[event.Cluster] = clusters[event.Cluster] || event.Node == ""
		}
		for cluster, connection := range clusters {
			request := reconcile.Request{
				NamespacedName: client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name},
			}
			if connection {
				queue.Add(request)
			} else {
				queue.AddAfter(request, countDelay)
			}
		}
	})
	return nil
}
