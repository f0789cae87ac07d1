package desired

import (
	"slices"
	"time"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/hostlist"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// ReservationName returns the name of the reservation for a NodeSet's scheduled update.
func ReservationName(set *slinkyv1beta1.NodeSet) string {
	return set.Namespace + "-" + set.Name + "-update"
}

// Reservation returns the reservation that a scheduled update of these Slurm nodes needs: while pods are outdated, and
// until its window is over. It returns nil if none is needed.
func Reservation(set *slinkyv1beta1.NodeSet, slurmNodes []string, outdated int, now time.Time) (*slurm.Reservation,
	error) {
	start, end, scheduled := window(set)
	if !scheduled || outdated == 0 || set.DeletionTimestamp != nil || !now.Before(end) || len(slurmNodes) == 0 {
		return nil, nil
	}
	expression, err := hostlist.Compress(slurmNodes)
	if err != nil {
		return nil, err
	}
	// Running jobs do not prevent the reservation: the update waits until they end.
	flags := append([]string{"MAINT", "IGNORE_JOBS"}, set.Spec.UpdateStrategy.ScheduledUpdate.Flags...)
	slices.Sort(flags)
	return &slurm.Reservation{
		Name: ReservationName(set), Start: start, End: end, Nodes: expression, Users: []string{"root"},
		Flags: slices.Compact(flags),
	}, nil
}

// WindowEdge returns when the window of a scheduled update next opens or closes; zero if that changes nothing.
func WindowEdge(set *slinkyv1beta1.NodeSet, outdated int, now time.Time) time.Time {
	start, end, scheduled := window(set)
	switch {
	case !scheduled || outdated == 0:
		return time.Time{}
	case start.After(now):
		return start
	case end.After(now):
		return end
	default:
		return time.Time{}
	}
}

// window returns the window of a scheduled update; false if updates are not scheduled.
func window(set *slinkyv1beta1.NodeSet) (start, end time.Time, scheduled bool) {
	strategy := set.Spec.UpdateStrategy
	update := strategy.ScheduledUpdate
	if strategy.Type != slinkyv1beta1.ScheduledUpdate || update == nil || update.StartTime == nil {
		return time.Time{}, time.Time{}, false
	}
	return update.StartTime.Time, update.StartTime.Add(update.Duration.Duration), true
}
