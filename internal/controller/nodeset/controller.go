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
	"maps"
	"slices"
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
	"github.com/slurm-operator/slurm-operator/internal/window"
)

// A Reconciler reconciles NodeSets.
type Reconciler struct {
	Client   client.Client
	Children *child.Applier
	Status   *status.Writer
	Clock    clock.PassiveClock
	// NewQueue creates the work queue; nil for the default.
	NewQueue retry.NewQueue
	Images   naming.Images
	Pool     *slurm.Pool
	Metrics  *Metrics
	// Live reads from the API server, where the cache may be stale.
	Live client.Reader
	// Window limits the creations and deletions of pods in flight; nil for no limit.
	Window *window.Window
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string

	expectations   expectations
	drainHistories drainHistories
	reservations   reservations
	powerUps       powerUps
	requests       requestWatch
	names          names
	decisions      decisions
	eventDelays    eventDelays
	unfinished     unfinished
}

// Reconcile moves one NodeSet towards its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope, err := r.observe(ctx, request)
	if err != nil || scope == nil {
		return ctrl.Result{}, err
	}
	r.eventDelays.update(request.NamespacedName, len(scope.pods))
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
		return r.resume(ctx, scope, until) // the cache is stale
	}
	r.unfinished.forget(scope.set.UID)
	scope, next := r.decide(ctx, scope)
	result := r.act(ctx, scope, &next)
	err = r.report(ctx, scope, &next, result)
	nextEvent := r.announce(scope, &next)
	if _, refused := child.Refusal(result.failure); refused {
		return retry.After(child.RetryRefusal, err)
	}
	return retry.After(pause(scope, &next, result, nextEvent), errors.Join(result.failure, err))
}

// decide makes a plan. If the plan needs newer records of some Slurm nodes, or of all, it refreshes the mirror and
// makes another one, which may need others. It returns the scope that the plan was made from.
func (r *Reconciler) decide(ctx context.Context, observed *scope) (*scope, plan.Plan) {
	next := plan.Next(&observed.snapshot)
	if observed.session == nil {
		return observed, next
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	read := map[string]bool{} // Slurm nodes
	for range maxRefreshes {
		if !next.NeedsRefresh || next.Refresh != nil && !addNew(read, next.Refresh) {
			break
		}
		var nodes []string // all
		if next.Refresh != nil {
			nodes = slices.Sorted(maps.Keys(read))
		}
		began := time.Now()
		snapshot, err := observed.session.Mirror.RefreshNodes(ctx, nodes)
		refreshed := *observed
		refreshed.reading += time.Since(began)
		if err != nil {
			observed = &refreshed
			break // the plan waits; an event of the session follows when Slurm answers again
		}
		r.readSnapshot(&refreshed, snapshot)
		refreshed.snapshot.JustRead = true
		complete := !snapshot.NodesAsOf.Before(began)
		if !complete {
			refreshed.snapshot.Reread = maps.Clone(read)
		}
		if observed, next = &refreshed, plan.Next(&refreshed.snapshot); complete {
			break
		}
	}
	return observed, next
}

// maxRefreshes is how often Slurm is read for one plan.
const maxRefreshes = 3

// addNew adds names to a set, and reports whether one of them is new.
func addNew(names map[string]bool, more []string) bool {
	before := len(names)
	for _, name := range more {
		names[name] = true
	}
	return len(names) > before
}

// refreshTimeout bounds the reads of Slurm for a plan, and secondReadTimeout the one before Slurm nodes are forced
// down, so that no reconcile takes longer than half a minute. With 16,000 nodes, a list takes more than ten seconds.
const refreshTimeout, secondReadTimeout = 20 * time.Second, 10 * time.Second

// readMirror updates a scope with the mirror's latest snapshot of Slurm.
func (r *Reconciler) readMirror(scope *scope) {
	scope.now = r.Clock.Now()
	snapshot := &scope.snapshot
	snapshot.Now = scope.now
	if scope.session == nil {
		return
	}
	r.readSnapshot(scope, scope.session.Mirror.Snapshot())
}

// readSnapshot updates a scope with a snapshot of Slurm.
func (r *Reconciler) readSnapshot(scope *scope, current *slurm.Snapshot) {
	scope.now = r.Clock.Now()
	snapshot := &scope.snapshot
	snapshot.Now, snapshot.Answers, snapshot.Slurm = scope.now, scope.session.Status().Reachable, current
	nodes := make([]string, len(snapshot.Pods))
	for i := range snapshot.Pods {
		nodes[i] = snapshot.Pods[i].SlurmNode
	}
	r.drainHistories.retain(scope, nodes)
	snapshot.DrainedSince = r.drainHistories.observe(scope, snapshot.Slurm, nodes...)
}

// readShare limits the time that is spent on reads of Slurm which a plan asks for without an event to 1/readShare, and
// maxReadPause is the longest pause for that reason. A list of many Slurm nodes, or the states of many jobs, take
// seconds, and may still not prove what the plan needs.
const readShare, maxReadPause = 8, time.Minute

// pause returns when to reconcile again without an event; zero for never.
func pause(scope *scope, next *plan.Plan, result outcome, nextEvent time.Time) time.Duration {
	rest := min(readShare*scope.reading, maxReadPause)
	switch {
	case result.again:
		return time.Second
	case next.NeedsRefresh && scope.snapshot.Answers: // or the refresh failed
		return max(time.Second, rest)
	}
	wake := next.Wake
	for _, moment := range []time.Time{desired.WindowEdge(scope.set, next.Outdated, scope.now),
		retryPlacement(scope, result), retryProvisioning(scope), jobsDue(scope, next), result.describe, nextEvent,
		firstAnswerDue(scope)} {
		if wake.IsZero() || (!moment.IsZero() && moment.Before(wake)) {
			wake = moment
		}
	}
	if wake.IsZero() {
		return 0
	}
	return max(wake.Sub(scope.now), rest)
}
