// Package nodeset runs the slurmd pods of each NodeSet: it creates, replaces and deletes them, and never costs a
// running job.
//
// Each reconcile observes the NodeSet, its pods, their Kubernetes nodes and one snapshot of Slurm (observe.go). Package
// plan decides what happens to the pods, package desired what everything around them should be, both as pure functions
// of that; act.go carries it out, and status.go reports. Package worker builds the pods. Every deletion of a pod goes
// through one function (delete.go), which evaluates the deletion rule again with the latest snapshot.
//
// Nothing is polled: events of pods, of Kubernetes nodes and of the mirror of Slurm enqueue the NodeSets that they
// concern.
package nodeset

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A Reconciler reconciles NodeSets.
type Reconciler struct {
	Client   client.Client
	Children *child.Applier
	Status   *status.Writer
	Clock    clock.PassiveClock
	Images   naming.Images
	Pool     *slurm.Pool
	Metrics  *Metrics
	// Live reads from the API server, where the cache may be stale.
	Live client.Reader
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string

	expectations   expectations
	drainHistories drainHistories
	reservations   reservations
	powerUps       powerUps
	names          names
	decisions      decisions
}

// Reconcile moves one NodeSet towards its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope, err := r.observe(ctx, request)
	if err != nil || scope == nil {
		return ctrl.Result{}, err
	}
	if orphaning(scope.set) {
		return ctrl.Result{}, r.finish(ctx, scope)
	}
	if len(scope.foreign) > 0 {
		return r.takeOver(ctx, scope)
	}
	if len(scope.orphans)+len(scope.strays) > 0 {
		return r.settleOwners(ctx, scope)
	}
	if until := r.expectations.open(scope.set.UID, scope.pods, scope.now); !until.IsZero() {
		return ctrl.Result{RequeueAfter: until.Sub(scope.now)}, nil // the cache is stale
	}
	scope, next := r.decide(ctx, scope)
	result := r.act(ctx, scope, &next)
	err = r.report(ctx, scope, &next, result)
	nextEvent := r.announce(scope, &next)
	if _, refused := child.Refusal(result.failure); refused {
		return retry.After(child.RetryRefusal, err)
	}
	return retry.After(pause(scope, &next, result, nextEvent), errors.Join(result.failure, err))
}

// decide makes a plan. If the plan needs a newer snapshot of Slurm, it refreshes the mirror and makes another one. It
// returns the scope that the plan was made from.
func (r *Reconciler) decide(ctx context.Context, observed *scope) (*scope, plan.Plan) {
	next := plan.Next(&observed.snapshot)
	if !next.NeedsRefresh || observed.session == nil {
		return observed, next
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	if _, err := observed.session.Mirror.Refresh(ctx); err != nil {
		return observed, next // the plan waits; an event of the session follows when Slurm answers again
	}
	refreshed := *observed
	r.readMirror(&refreshed)
	refreshed.snapshot.JustRead = true
	return &refreshed, plan.Next(&refreshed.snapshot)
}

// refreshTimeout bounds a read of Slurm, so that no reconcile takes long.
const refreshTimeout = 10 * time.Second

// readMirror updates a scope with the mirror's latest snapshot of Slurm.
func (r *Reconciler) readMirror(scope *scope) {
	scope.now = r.Clock.Now()
	snapshot := &scope.snapshot
	snapshot.Now = scope.now
	if scope.session == nil {
		return
	}
	snapshot.Answers = scope.session.Status().Reachable
	snapshot.Slurm = scope.session.Mirror.Snapshot()
	nodes := make([]string, len(snapshot.Pods))
	for i := range snapshot.Pods {
		nodes[i] = snapshot.Pods[i].SlurmNode
	}
	r.drainHistories.retain(scope, nodes)
	snapshot.DrainedSince = r.drainHistories.observe(scope, snapshot.Slurm, nodes...)
}

// pause returns when to reconcile again without an event; zero for never.
func pause(scope *scope, next *plan.Plan, result outcome, nextEvent time.Time) time.Duration {
	if result.again || (next.NeedsRefresh && scope.snapshot.Answers) { // or the refresh failed
		return time.Second
	}
	wake := next.Wake
	for _, moment := range []time.Time{desired.WindowEdge(scope.set, next.Outdated, scope.now),
		retryPlacement(scope, result), jobsDue(scope, next), result.describe, nextEvent} {
		if wake.IsZero() || (!moment.IsZero() && moment.Before(wake)) {
			wake = moment
		}
	}
	if wake.IsZero() {
		return 0
	}
	return wake.Sub(scope.now)
}
