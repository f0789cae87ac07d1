// Package nodeset runs the slurmd pods of each NodeSet: it makes them, replaces them and lets them go, and never costs a job.
//
// Each reconcile observes the NodeSet, its pods, their Kubernetes nodes and one snapshot of Slurm; package plan decides, as a
// pure function of that; act carries the plan out; report tells. Package worker builds the pods. The way from a plan to the
// deletion of a pod leads through one function, which asks the deletion rule once more with what is known at that moment.
//
// Nothing is polled: pods, nodes, and the changes that the mirror of Slurm tells of enqueue the NodeSets concerned.
package nodeset

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/child"
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
	// Live asks the API server itself, where the cache may be behind.
	Live client.Reader
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string

	expectations expectations
	witnesses    witnesses
	reservations reservations
	names        names
	decisions    decisions
}

// Reconcile takes one NodeSet a step further.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope, err := r.observe(ctx, request)
	if err != nil || scope == nil {
		return ctrl.Result{}, err
	}
	if orphaning(scope.set) {
		return ctrl.Result{}, r.finish(ctx, scope)
	}
	if len(scope.orphans)+len(scope.strays) > 0 {
		return r.settleOwners(ctx, scope)
	}
	if until := r.expectations.open(scope.set.UID, scope.pods, scope.now); !until.IsZero() {
		return ctrl.Result{RequeueAfter: until.Sub(scope.now)}, nil // the cache does not show yet what was done last
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

// decide makes a plan. If that lacks nothing but a newer read of Slurm, it refreshes what is known of Slurm and makes another one. It returns
// what the plan was made from.
func (r *Reconciler) decide(ctx context.Context, observed *scope) (*scope, plan.Plan) {
	next := plan.Next(&observed.snapshot)
	if !next.Proof || observed.session == nil {
		return observed, next
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	if _, err := observed.session.Mirror.Refresh(ctx); err != nil {
		return observed, next // the plan waits, and the session tells when Slurm answers again
	}
	refreshed := *observed
	r.look(&refreshed)
	refreshed.snapshot.Fresh = true
	return &refreshed, plan.Next(&refreshed.snapshot)
}

// refreshTimeout bounds a read of Slurm, so that no reconcile takes long.
const refreshTimeout = 10 * time.Second

// look takes up what is known of Slurm now.
func (r *Reconciler) look(scope *scope) {
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
		nodes[i] = snapshot.Pods[i].Node
	}
	r.witnesses.keep(scope, nodes)
	snapshot.DrainedSince = r.witnesses.look(scope, snapshot.Slurm, nodes...)
}

// pause is how long to wait before another reconcile although nothing happens; zero for ever.
func pause(scope *scope, next *plan.Plan, result outcome, nextEvent time.Time) time.Duration {
	if result.again || (next.Proof && scope.snapshot.Answers) { // or the newer look has not come
		return time.Second
	}
	wake := next.Wake
	for _, moment := range []time.Time{windowEdge(scope, next), placeAgain(scope, result), nextEvent} {
		if wake.IsZero() || (!moment.IsZero() && moment.Before(wake)) {
			wake = moment
		}
	}
	if wake.IsZero() {
		return 0
	}
	return wake.Sub(scope.now)
}
