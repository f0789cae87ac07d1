// Package slurmclient maintains the connection to each Slurm cluster: one session in the pool for each Controller that
// has a RestApi, with its own tokens.
//
// It alone writes the session's state to the Controller's status: whether Slurm is reachable, its version, its nodes
// and jobs. There is no finalizer: the session is closed when the operator observes the deletion of the Controller, and
// it does no harm if it lives slightly longer.
package slurmclient

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/status"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// A Reconciler reconciles the sessions of Controllers.
type Reconciler struct {
	Client client.Client
	Status *status.Writer
	Clock  clock.PassiveClock
	Pool   *slurm.Pool
	// Requests returns the observer of the requests to a cluster, and Forget drops its counts for a deleted cluster.
	Requests func(slurm.Key) slurm.Observer
	Forget   func(slurm.Key)
	// Dial creates a client for slurmrestd.
	Dial func(rest.Options) (slurm.Client, error)
}

// A scope is the state that one reconcile observes.
type scope struct {
	controller *slinkyv1beta1.Controller
	restAPIs   []slinkyv1beta1.RestApi
	// jwtKey is nil if it does not exist. awaitsAccounting is true if the Accounting that has it does not exist; the
	// session is then left unchanged.
	jwtKey           []byte
	awaitsAccounting bool
	session          *slurm.Session // nil if there is none
	now              time.Time
}

// countInterval is how often the counts of nodes and jobs are written to the status, if they have changed. They are in
// memory, so the comparison is cheap.
const countInterval = 15 * time.Second

// Reconcile reconciles the session of one cluster with its Controller.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	key := slurm.Key{Namespace: request.Namespace, Name: request.Name}
	scope, err := r.observe(ctx, request, key)
	if apierrors.IsNotFound(err) {
		r.closeSession(ctx, key, "the Controller is deleted")
		r.Forget(key)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.act(ctx, scope, key); err != nil {
		return ctrl.Result{}, err
	}
	return retry.After(countInterval, r.report(ctx, scope))
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
	scope.restAPIs = restAPIs.Items
	var accounting *slinkyv1beta1.Accounting
	var err error
	if name := scope.controller.Spec.AccountingRef; name != nil {
		if accounting, err = reference.Object(ctx, r.Client, request.Namespace, name.Name, &slinkyv1beta1.Accounting{}); err != nil {
			return nil, err
		}
		scope.awaitsAccounting = accounting == nil && scope.controller.Spec.JWTKey() == nil
	}
	if scope.jwtKey, err = reference.SecretValue(ctx, r.Client, request.Namespace, naming.ControllerKeys(scope.controller, accounting).JWT); err != nil {
		return nil, err
	}
	scope.session, _ = r.Pool.Get(key)
	return scope, nil
}

// act opens, replaces or closes the session.
func (r *Reconciler) act(ctx context.Context, scope *scope, key slurm.Key) error {
	if scope.awaitsAccounting && scope.controller.DeletionTimestamp == nil {
		return nil // slurmctld keeps running with its keys, and so does the session
	}
	endpoint, ok := decide(scope)
	if !ok {
		r.closeSession(ctx, key, "there is no RestApi, no key for tokens, or the Controller is being deleted")
		scope.session = nil
		return nil
	}
	before := scope.session
	err := r.Pool.Set(key, slurm.Settings{Identity: endpoint.identity(scope.jwtKey), Wrap: trace.Slurm, Dial: func() (slurm.Client, error) {
		return r.Dial(rest.Options{
			URL: endpoint.url, Metrics: endpoint.metrics, Token: tokens(scope.jwtKey, r.Clock), Observer: r.Requests(key),
		})
	}})
	if err != nil {
		return err
	}
	if scope.session, _ = r.Pool.Get(key); scope.session != before {
		log.FromContext(ctx).Info("opened Slurm session", "url", endpoint.url)
	}
	if scope.session != nil && endpoint.ready && !scope.session.Status().Reachable {
		scope.session.Mirror.Retry()
	}
	return nil
}

// closeSession closes the session of a cluster, if there is one.
func (r *Reconciler) closeSession(ctx context.Context, key slurm.Key, why string) {
	if _, open := r.Pool.Get(key); open {
		r.Pool.Remove(key)
		log.FromContext(ctx).Info("closed Slurm session", "why", why)
	}
}
