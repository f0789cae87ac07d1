package nodeset

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/observation"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/retry"
)

// unfinished remember the pods of plans that there was no time to create. A large NodeSet takes several reconciles, and
// the cache is seconds behind while thousands of pods start: waiting for it before each of them would double the time.
type unfinished struct {
	mu    sync.Mutex
	bySet map[types.UID]creation
}

// A creation is the rest of a plan: pods that are still to be created.
type creation struct {
	// planned is when the plan was made, generation the spec and revision the template that it was made for.
	planned    time.Time
	generation int64
	revision   string
	additions  []plan.Action
}

// maxPlanAge limits how long a creation is resumed without a new plan, which other changes wait for.
const maxPlanAge = time.Minute

// keep remembers the rest of a creation, if there is any. Pods in DaemonSet mode depend on Kubernetes nodes, and those
// of elastic NodeSets on jobs: they are planned again.
func (u *unfinished) keep(scope *scope, rest creation) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.bySet, scope.set.UID)
	if len(rest.additions) == 0 || observation.IsDaemonSet(scope.set) || scope.set.Spec.Elastic != nil {
		return
	}
	if u.bySet == nil {
		u.bySet = map[types.UID]creation{}
	}
	u.bySet[scope.set.UID] = rest
}

// forget drops the rest of a creation: a new plan replaces it.
func (u *unfinished) forget(set types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.bySet, set)
}

// take returns the rest of a creation, and forgets it. It is empty if what the plan was made for has changed.
func (u *unfinished) take(scope *scope) creation {
	u.mu.Lock()
	defer u.mu.Unlock()
	rest := u.bySet[scope.set.UID]
	delete(u.bySet, scope.set.UID)
	if scope.set.DeletionTimestamp != nil || rest.generation != scope.set.Generation ||
		rest.revision != scope.revision.hash || scope.snapshot.Set.Withheld != "" ||
		scope.now.Sub(rest.planned) > maxPlanAge {
		return creation{}
	}
	return rest
}

// resume creates the pods that the last reconcile had no time for, although the cache does not show yet what it has
// created: this is no new decision. Everything else waits for the cache, at most until the given time.
func (r *Reconciler) resume(ctx context.Context, scope *scope, until time.Time) (ctrl.Result, error) {
	rest := r.unfinished.take(scope)
	if len(rest.additions) == 0 {
		return ctrl.Result{RequeueAfter: until.Sub(scope.now)}, nil
	}
	failure := r.createPods(ctx, scope, rest)
	next := plan.Next(&scope.snapshot) // only for the status
	err := r.report(ctx, scope, &next, outcome{failure: failure})
	return retry.After(time.Second, errors.Join(failure, err))
}
