package accounting

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/retry"
)

// Name is the controller's name, in logs, metrics and events.
const Name = "accounting"

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=accountings;controllers,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=accountings/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=core,resources=services;secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=core,resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=core,resources=configmaps,verbs=get;list;watch

// SetupWithManager watches Accountings, their children and pods, and the objects they reference.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named(Name).
		WithOptions(retry.Options(Name, "Accounting", r.NewQueue)).
		For(&slinkyv1beta1.Accounting{}).
		Owns(&appsv1.StatefulSet{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.Secret{}).
		Watches(&corev1.Pod{}, index.Pods(naming.Slurmdbd)).
		Watches(&slinkyv1beta1.Controller{}, index.ControllersByAccounting.Referenced(),
			builder.WithPredicates(index.UserChanged)).
		Watches(&corev1.Secret{}, index.Handler(r.Client, index.AccountingsBySecret)).
		Watches(&corev1.ConfigMap{}, index.Handler(r.Client, index.AccountingsByConfigMap)).
		Complete(r)
}
