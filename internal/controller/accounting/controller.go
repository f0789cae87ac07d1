// Package accounting runs slurmdbd for each Accounting: a StatefulSet with one pod, a Service in front of it, and a
// Secret with slurmdbd.conf, which contains the database password.
//
// slurmdbd reads its configuration, password and keys only when it starts: the pod template has a digest of them, and a
// change replaces the pod. The pod is ready when slurmdbd answers a query that needs the database. While it is not
// ready, the operator reads from its helper in slurmdbd's pod which error its database returns, or how far it has
// converted it. A pod whose slurmdbd may be converting its database is not replaced.
package accounting

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A Reconciler reconciles Accountings.
type Reconciler struct {
	Client   client.Client
	Children *child.Applier
	Status   *status.Writer
	Clock    clock.PassiveClock
	// NewQueue creates the work queue; nil for the default.
	NewQueue retry.NewQueue
	Images   naming.Images
}

// Reconcile reconciles slurmdbd with one Accounting.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope, err := r.observe(ctx, request)
	if err != nil || scope == nil {
		return ctrl.Result{}, err
	}
	plan := decide(scope)
	err = r.act(ctx, scope, plan)
	if refusal, ok := child.Refusal(err); ok {
		return retry.After(child.RetryRefusal, r.report(ctx, scope, obstacle(refusal), nil))
	}
	return retry.After(requeueAfter(scope), errors.Join(err, r.report(ctx, scope, plan, err)))
}

// requeueAfter returns when to query slurmdbd again: while it is not ready, as often as it retries the connection, and
// while its pod waits to be replaced. When it becomes ready, the pod's status changes. It also returns when to find out
// why the StatefulSet has no pod.
func requeueAfter(scope *scope) time.Duration {
	switch {
	case scope.lacksPod():
		return child.RetryRefusal
	case scope.statefulSet != nil && len(scope.pods) == 0:
		return podCreationTimeout
	}
	if pod := running(scope.pods); pod == nil || isReady(*pod) && describeConversion(scope) == "" {
		return 0
	}
	return 5 * time.Second
}
