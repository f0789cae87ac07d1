package token

import (
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/retry"
)

// Name is the controller's name, in logs, metrics and events.
const Name = "token"

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=tokens,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=tokens/status,verbs=patch
// +kubebuilder:rbac:groups=core,resources=secrets,verbs=get;list;watch;create;patch;delete

// SetupWithManager watches Tokens, their Secrets and the keys that sign them.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named(Name).
		WithOptions(retry.Options(Name, "Token")).
		For(&slinkyv1beta1.Token{}).
		Owns(&corev1.Secret{}).
		Watches(&corev1.Secret{}, index.Handler(r.Client, index.TokensBySecret)).
		Complete(r)
}
