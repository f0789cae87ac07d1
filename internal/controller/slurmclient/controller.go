// Package slurmclient maintains the connection to each Slurm cluster: one session in the pool for each Controller that
// has a RestApi, with its own tokens.
//
// A token has all privileges in Slurm, so it is sent only to the cluster IP of the Service that the RestApi controls.
// Without such a Service there is no session. Connections use TLS, and only a server with the certificate of the
// RestApi is accepted; there is no fallback to plain HTTP.
//
// It alone writes the session's state to the Controller's status: whether Slurm is reachable, its version, its nodes
// and jobs. There is no finalizer: the session is closed when the operator observes the deletion of the Controller, and
// it does no harm if it lives slightly longer.
package slurmclient

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A Reconciler reconciles the sessions of Controllers.
type Reconciler struct {
	Client client.Client
	Status *status.Writer
	Clock  clock.PassiveClock
	// NewQueue creates the work queue; nil for the default.
	NewQueue retry.NewQueue
	Pool     *slurm.Pool
	// Requests returns the observer of the requests to a cluster, and Forget drops its counts for a deleted cluster.
	Requests func(slurm.Key) slurm.Observer
	Forget   func(slurm.Key)
	// Dial creates a client for slurmrestd.
	Dial func(rest.Options) (slurm.Client, error)
	// NodeChanges asks the agent in the pod with the given address which Slurm nodes have changed since a cursor. Both
	// prove to each other that they have the key.
	NodeChanges func(ctx context.Context, address string, key []byte, since string) (slurm.NodeChanges, error)

	logged sync.Map // by slurm.Key: the reason of the last log line about its connection
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
		r.logged.Delete(key)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.act(ctx, scope, key); err != nil {
		return ctrl.Result{}, err
	}
	return retry.After(countInterval, r.report(ctx, scope, key))
}
