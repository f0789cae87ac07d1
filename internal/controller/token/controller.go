// Package token maintains the Secret of each Token: a JWT for one Slurm user, renewed well before it expires and signed
// again when the key or the spec has changed.
//
// The Secret itself is the only state: a token in it is kept if the current key signed it, for the right user and
// lifetime, and it is not due for renewal.
package token

import (
	"context"
	"errors"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A Reconciler reconciles Tokens.
type Reconciler struct {
	Client   client.Client
	Children *child.Applier
	Status   *status.Writer
	Clock    clock.PassiveClock
	// NewQueue creates the work queue; nil for the default.
	NewQueue retry.NewQueue
}

// Reconcile reconciles the Secret of one Token.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope, err := r.observe(ctx, request)
	if err != nil || scope == nil {
		return ctrl.Result{}, err
	}
	plan := decide(scope)
	err = r.act(ctx, scope, plan)
	if foreign, ok := errors.AsType[*child.ForeignError](err); ok {
		plan, err = conflict(foreign), nil
	}
	return retry.After(plan.requeueAfter, errors.Join(err, r.report(ctx, scope, plan, err)))
}
