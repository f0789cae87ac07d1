package slurmclient

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A scope is the state that one reconcile observes.
type scope struct {
	controller *slinkyv1beta1.Controller
	// restAPI is the RestApi in use; nil if there is none. service is its Service, and slurmctld the Controller's; nil
	// if they do not exist.
	restAPI            *slinkyv1beta1.RestApi
	service, slurmctld *corev1.Service
	// certificate is the Secret with the certificate of the RestApi; nil if it does not exist.
	certificate *corev1.Secret
	// jwtKey is nil if it does not exist. awaitsAccounting is true if the Accounting that has it does not exist; the
	// session is then left unchanged.
	jwtKey           []byte
	awaitsAccounting bool
	session          *slurm.Session // nil if there is none
	now              time.Time
}

func (r *Reconciler) observe(ctx context.Context, request ctrl.Request, key slurm.Key) (*scope, error) {
	scope := &scope{controller: &slinkyv1beta1.Controller{}, now: r.Clock.Now()}
	if err := r.Client.Get(ctx, request.NamespacedName, scope.controller); err != nil {
		return nil, err
	}
	restAPIs := &slinkyv1beta1.RestApiList{}
	if err := index.RestAPIsByController.List(ctx, r.Client, request.NamespacedName, restAPIs); err != nil {
		return nil, err
	}
	var err error
	if scope.restAPI = choose(scope.controller, restAPIs.Items); scope.restAPI != nil {
		if scope.service, err = reference.Object(ctx, r.Client, request.Namespace, naming.RestAPI(scope.restAPI.Name),
			&corev1.Service{}); err != nil {
			return nil, err
		}
		if scope.certificate, err = reference.Object(ctx, r.Client, request.Namespace,
			naming.RestAPICertificate(scope.restAPI), &corev1.Secret{}); err != nil {
			return nil, err
		}
	}
	if scope.slurmctld, err = reference.Object(ctx, r.Client, request.Namespace, naming.Controller(request.Name),
		&corev1.Service{}); err != nil {
		return nil, err
	}
	var accounting *slinkyv1beta1.Accounting
	if name := scope.controller.Spec.AccountingRef; name != nil {
		if accounting, err = reference.Object(ctx, r.Client, request.Namespace, name.Name,
			&slinkyv1beta1.Accounting{}); err != nil {
			return nil, err
		}
		scope.awaitsAccounting = accounting == nil && scope.controller.Spec.JWTKey() == nil
	}
	if _, scope.jwtKey, err = reference.FirstSecretValue(ctx, r.Client, request.Namespace,
		naming.ControllerKeys(scope.controller, accounting).JWTNames...); err != nil {
		return nil, err
	}
	scope.session, _ = r.Pool.Get(key)
	return scope, nil
}
