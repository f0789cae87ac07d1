package nodeset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/hostlist"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// reservations remember which reservation was last seen to be right for each NodeSet, so that Slurm is asked only when another
// one is wanted. They are known by their names, and found again after a restart.
type reservations struct {
	mu    sync.Mutex
	bySet map[types.UID]string
}

func (r *reservations) settled(set types.UID, wanted string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	is, known := r.bySet[set]
	return known && is == wanted
}

func (r *reservations) settle(set types.UID, is string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bySet == nil {
		r.bySet = map[types.UID]string{}
	}
	r.bySet[set] = is
}

func (r *reservations) forget(set types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.bySet, set)
}

// reserve keeps a reservation in Slurm for a scheduled update, from when pods are out of date until they are not, until the window
// is over, or until the NodeSet has another update strategy. No job begins that would run into it.
func (r *Reconciler) reserve(ctx context.Context, scope *scope, next *plan.Plan, result *outcome) error {
	if scope.session == nil || !scope.snapshot.Answers || scope.snapshot.Slurm == nil {
		return nil
	}
	wanted, err := reservation(scope, next)
	if err != nil {
		return err
	}
	digest := ""
	if wanted != nil {
		digest = fmt.Sprintf("%+v", *wanted)
	}
	if r.reservations.settled(scope.set.UID, digest) {
		return nil
	}
	err = replaceReservation(ctx, scope.session.Client, reservationName(scope.set), wanted)
	if errors.Is(err, slurm.Unsupported) {
		result.unreserved = "this release of Slurm takes no reservations through its REST API, so make one with scontrol"
		return nil
	}
	if err != nil {
		return fmt.Errorf("reserving the nodes for the update: %w", err)
	}
	r.reservations.settle(scope.set.UID, digest)
	return nil
}

func reservationName(set *slinkyv1beta1.NodeSet) string {
	return set.Namespace + "-" + set.Name + "-update"
}

// reservation is the one that there should be; nil when there should be none.
func reservation(scope *scope, next *plan.Plan) (*slurm.Reservation, error) {
	strategy := scope.set.Spec.UpdateStrategy
	window := strategy.ScheduledUpdate
	if strategy.Type != slinkyv1beta1.ScheduledUpdate || window == nil || window.StartTime == nil || next.Outdated == 0 || scope.set.DeletionTimestamp != nil {
		return nil, nil
	}
	start, end := window.StartTime.Time, window.StartTime.Add(window.Duration.Duration)
	var nodes []string
	for i := range scope.snapshot.Pods {
		if _, known := scope.snapshot.Slurm.Node(scope.snapshot.Pods[i].Node); known {
			nodes = append(nodes, scope.snapshot.Pods[i].Node)
		}
	}
	if !scope.now.Before(end) || len(nodes) == 0 {
		return nil, nil
	}
	expression, err := hostlist.Compress(nodes)
	if err != nil {
		return nil, err
	}
	// Jobs that run already do not keep a reservation from being made: the update waits for their end.
	flags := append([]string{"MAINT", "IGNORE_JOBS"}, window.Flags...)
	slices.Sort(flags)
	return &slurm.Reservation{
		Name: reservationName(scope.set), Start: start, End: end, Nodes: expression, Users: []string{"root"}, Flags: slices.Compact(flags),
	}, nil
}

// replaceReservation makes a reservation what it should be.
func replaceReservation(ctx context.Context, client slurm.Client, name string, wanted *slurm.Reservation) error {
	all, err := client.Reservations(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(is slurm.Reservation) bool { return is.Name == name }) {
		if err := client.DeleteReservation(ctx, name); err != nil {
			return err
		}
	}
	if wanted == nil {
		return nil
	}
	made := *wanted
	if now := time.Now(); made.Start.Before(now) {
		made.Start = now // Slurm makes none that has begun
	}
	return client.CreateReservation(ctx, made)
}

// windowEdge is when the window of a scheduled update next opens or closes; zero when that does not matter.
func windowEdge(scope *scope, next *plan.Plan) time.Time {
	window := scope.set.Spec.UpdateStrategy.ScheduledUpdate
	if scope.set.Spec.UpdateStrategy.Type != slinkyv1beta1.ScheduledUpdate || window == nil || window.StartTime == nil || next.Outdated == 0 {
		return time.Time{}
	}
	for _, edge := range []time.Time{window.StartTime.Time, window.StartTime.Add(window.Duration.Duration)} {
		if edge.After(scope.now) {
			return edge
		}
	}
	return time.Time{}
}
