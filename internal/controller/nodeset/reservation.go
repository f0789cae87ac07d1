package nodeset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// reservations remember the last reservation that was right for each NodeSet, so that Slurm is queried only when it
// must change. Reservations are identified by name, and found again after a restart.
type reservations struct {
	mu    sync.Mutex
	bySet map[types.UID]string
}

func (r *reservations) current(set types.UID, wanted string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	current, known := r.bySet[set]
	return known && current == wanted
}

func (r *reservations) remember(set types.UID, current string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bySet == nil {
		r.bySet = map[types.UID]string{}
	}
	r.bySet[set] = current
}

func (r *reservations) forget(set types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.bySet, set)
}

// reserve creates, updates or deletes the reservation in Slurm for a scheduled update, so that no job starts that would
// run into its window.
func (r *Reconciler) reserve(ctx context.Context, scope *scope, next *plan.Plan, result *outcome) error {
	if scope.session == nil || !scope.snapshot.Answers || scope.snapshot.Slurm == nil {
		return nil
	}
	var slurmNodes []string
	for i := range scope.snapshot.Pods {
		// Terminating pods count: a replacement does not change the reservation.
		if _, known := scope.snapshot.Slurm.Node(scope.snapshot.Pods[i].SlurmNode); known {
			slurmNodes = append(slurmNodes, scope.snapshot.Pods[i].SlurmNode)
		}
	}
	wanted, err := desired.Reservation(scope.set, slurmNodes, next.Outdated, scope.now)
	if err != nil {
		return err
	}
	digest := ""
	if wanted != nil {
		digest = fmt.Sprintf("%+v", *wanted)
	}
	if r.reservations.current(scope.set.UID, digest) {
		return nil
	}
	err = replaceReservation(ctx, scope.session.Client, desired.ReservationName(scope.set), wanted)
	if errors.Is(err, slurm.Unsupported) {
		result.unreserved = "this release of Slurm takes no reservations through its REST API, so make one with " +
			"scontrol"
		return nil
	}
	if err != nil {
		return fmt.Errorf("reserving the nodes for the update: %w", err)
	}
	r.reservations.remember(scope.set.UID, digest)
	return nil
}

// replaceReservation deletes a reservation and creates the wanted one, if any.
func replaceReservation(ctx context.Context, client slurm.Client, name string, wanted *slurm.Reservation) error {
	all, err := client.Reservations(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(reservation slurm.Reservation) bool { return reservation.Name == name }) {
		if err := client.DeleteReservation(ctx, name); err != nil {
			return err
		}
	}
	if wanted == nil {
		return nil
	}
	created := *wanted
	if now := time.Now(); created.Start.Before(now) {
		created.Start = now // Slurm refuses one that starts in the past
	}
	return client.CreateReservation(ctx, created)
}
