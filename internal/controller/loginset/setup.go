package loginset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/retry"
)

// Name is the controller's name, in logs, metrics and events.
const Name = "loginset"

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=loginsets;controllers;accountings,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=loginsets/status,verbs=patch
// +kubebuilder:rbac:groups=core,resources=configmaps;services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=core,resources=secrets,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=core,resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete

// SetupWithManager watches LoginSets, the objects they own, their pods, and everything that their pods are built from.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	// Only the spec of a Controller or an Accounting matters here, and the user that the Controller has found.
	spec := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, index.UserChanged))
	return ctrl.NewControllerManagedBy(manager).
		Named(Name).
		WithOptions(retry.Options(Name, "LoginSet", r.NewQueue)).
		For(&slinkyv1beta1.LoginSet{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Watches(&corev1.Pod{}, index.Pods(naming.Login)).
		Watches(&slinkyv1beta1.Controller{}, index.Handler(r.Client, index.LoginSetsByController), spec).
		Watches(&slinkyv1beta1.Accounting{},
			index.Handler(r.Client, index.ControllersByAccounting, index.LoginSetsByController), spec).
		Watches(&corev1.Secret{}, index.Handler(r.Client, index.LoginSetsBySecret)).
		Watches(&corev1.Secret{}, index.Handler(r.Client, index.ControllersBySecret, index.LoginSetsByController)).
		Watches(&corev1.Secret{},
			index.Handler(r.Client, index.AccountingsBySecret, index.ControllersByAccounting,
				index.LoginSetsByController)).
		Complete(r)
}
