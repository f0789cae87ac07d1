package loginset

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
)

// A scope is the state that one reconcile observes.
type scope struct {
	set *slinkyv1beta1.LoginSet
	// controller and accounting are nil if they do not exist.
	controller *slinkyv1beta1.Controller
	accounting *slinkyv1beta1.Accounting
	// slurmKey and sssdConf are nil if they do not exist.
	slurmKey, sssdConf []byte
	// hostKeys is nil until they are generated.
	hostKeys *corev1.Secret
	// deployment is nil if there is none yet.
	deployment *appsv1.Deployment
	// authorizedKeys are those in the ConfigMap that the pods mount.
	authorizedKeys string
	pods           []corev1.Pod
	// clusterDomain is the DNS domain of the Kubernetes cluster; empty if unknown.
	clusterDomain string
	now           time.Time
}

func (r *Reconciler) observe(ctx context.Context, request ctrl.Request) (*scope, error) {
	set, err := reference.Object(ctx, r.Client, request.Namespace, request.Name, &slinkyv1beta1.LoginSet{})
	if err != nil || set == nil {
		return nil, err // objects that it owns are garbage-collected
	}
	scope := &scope{set: set, clusterDomain: r.ClusterDomain, now: r.Clock.Now()}
	if scope.hostKeys, err = reference.Object(ctx, r.Client, set.Namespace, naming.LoginHostKeys(set.Name),
		&corev1.Secret{}); err != nil {
		return nil, err
	}
	if scope.deployment, err = reference.Object(ctx, r.Client, set.Namespace, naming.LoginSet(set.Name),
		&appsv1.Deployment{}); err != nil {
		return nil, err
	}
	configuration := slinkyv1beta1.ConfigMapKeyReference{
		Name: naming.LoginConfiguration(set.Name), Key: authorizedKeysFile,
	}
	if scope.authorizedKeys, err = reference.ConfigMapValue(ctx, r.Client, set.Namespace, configuration); err != nil {
		return nil, err
	}
	if ref := set.Spec.SSSDConfRef; ref != nil {
		if scope.sssdConf, err = reference.SecretValue(ctx, r.Client, set.Namespace, *ref); err != nil {
			return nil, err
		}
	}
	if scope.pods, err = reference.Pods(ctx, r.Client, naming.Login, set); err != nil {
		return nil, err
	}
	return scope, r.observeController(ctx, scope)
}

func (r *Reconciler) observeController(ctx context.Context, scope *scope) (err error) {
	namespace := scope.set.Namespace
	scope.controller, err = reference.Object(ctx, r.Client, namespace, scope.set.Spec.ControllerRef.Name,
		&slinkyv1beta1.Controller{})
	if err != nil || scope.controller == nil {
		return err
	}
	if ref := scope.controller.Spec.AccountingRef; ref != nil {
		if scope.accounting, err = reference.Object(ctx, r.Client, namespace, ref.Name,
			&slinkyv1beta1.Accounting{}); err != nil {
			return err
		}
	}
	scope.slurmKey, err = reference.SecretValue(ctx, r.Client, namespace, scope.slurmKeyRef())
	return err
}

// slurmKeyRef returns the reference to the auth/slurm key of the cluster.
func (s *scope) slurmKeyRef() slinkyv1beta1.SecretKeyReference {
	return naming.ControllerKeys(s.controller, s.accounting).Slurm
}
