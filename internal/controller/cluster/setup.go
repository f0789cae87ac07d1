package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/retry"
)

// Name is the controller's name, in logs, metrics and events.
const Name = "controller"

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=controllers;accountings,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=nodesets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=controllers/status,verbs=patch
// +kubebuilder:rbac:groups=core,resources=configmaps;services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=core,resources=serviceaccounts,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=core,resources=secrets;persistentvolumeclaims,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=core,resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=servicemonitors,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager watches Controllers, the objects they own, and everything that their configuration is built from.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named(Name).
		WithOptions(retry.Options(Name, "Controller", r.NewQueue)).
		For(&slinkyv1beta1.Controller{}).
		Owns(&appsv1.StatefulSet{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.ServiceAccount{}).
		Watches(&corev1.Pod{}, index.Pods(naming.Slurmctld)).
		Watches(&corev1.Pod{}, index.Pods(naming.Validation)).
		Watches(&slinkyv1beta1.NodeSet{}, index.NodeSetsByController.Referenced(),
			builder.WithPredicates(contributionChanged)).
		Watches(&slinkyv1beta1.Accounting{}, index.Handler(r.Client, index.ControllersByAccounting)).
		Watches(&corev1.Secret{}, index.Handler(r.Client, index.ControllersBySecret)).
		Watches(&corev1.Secret{}, index.Handler(r.Client, index.AccountingsBySecret, index.ControllersByAccounting)).
		Watches(&corev1.ConfigMap{}, index.Handler(r.Client, index.ControllersByConfigMap)).
		Watches(&corev1.PersistentVolumeClaim{}, index.Handler(r.Client, index.ControllersByClaim)).
		Complete(r)
}

// contributionChanged passes only those changes of NodeSets that may change the configuration, not those of their pods.
var contributionChanged = predicate.Funcs{
	UpdateFunc: func(update event.UpdateEvent) bool {
		before, ok := update.ObjectOld.(*slinkyv1beta1.NodeSet)
		after, same := update.ObjectNew.(*slinkyv1beta1.NodeSet)
		return !ok || !same || before.Generation != after.Generation || before.Status.Desired != after.Status.Desired ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			before.Annotations[slinkyv1beta1.AnnotationSlurmName] != after.Annotations[slinkyv1beta1.AnnotationSlurmName]
	},
}
