package trace

import (
	"context"
	"errors"
	"strings"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// Slurm returns a client that logs its changes in Slurm.
func Slurm(next slurm.Client) slurm.Client { return slurmClient{next} }

type slurmClient struct{ slurm.Client }

// Close releases the connections of the client, if it has any.
func (s slurmClient) Close() {
	if closer, ok := s.Client.(interface{ Close() }); ok {
		closer.Close()
	}
}

// UpdateNodes changes Slurm nodes, and logs it even if Slurm refused the change for some of them.
func (s slurmClient) UpdateNodes(ctx context.Context, names []string, update slurm.NodeUpdate) error {
	err := s.Client.UpdateNodes(ctx, names, update)
	values := append([]any{"nodes", hostlist.Text(names)}, changes(update)...)
	switch {
	case err == nil:
		log.FromContext(ctx).Info(verb(update)+" Slurm nodes", values...)
	case errors.Is(err, slurm.PartialEffect):
		log.FromContext(ctx).Info(verb(update)+" some Slurm nodes", append(values, "error", err.Error())...)
	}
	return err
}

// verb describes what an update does to Slurm nodes.
func verb(update slurm.NodeUpdate) string {
	switch update.State {
	case slurm.Drain:
		return "drained"
	case slurm.Undrain:
		return "undrained"
	case slurm.PowerUp:
		return "powered up"
	case slurm.PowerDown:
		return "powered down"
	case slurm.ForcePowerDown:
		return "gave up the power-up of"
	case slurm.Resume, slurm.Down, slurm.Fail:
		return "set state " + string(update.State) + " of"
	default:
		return "updated"
	}
}

// changes returns the fields that an update sets.
func changes(update slurm.NodeUpdate) []any {
	var values []any
	if update.Reason != "" {
		values = append(values, "reason", update.Reason)
	}
	if update.Comment != nil {
		values = append(values, "comment", *update.Comment)
	}
	if update.Features != nil {
		values = append(values, "features", strings.Join(*update.Features, ","))
	}
	if update.Topology != nil {
		values = append(values, "topology", *update.Topology)
	}
	return values
}

// DeleteNodes deletes the records of Slurm nodes, and logs it.
func (s slurmClient) DeleteNodes(ctx context.Context, names []string) error {
	err := s.Client.DeleteNodes(ctx, names)
	if err == nil {
		log.FromContext(ctx).Info("deleted Slurm nodes", "nodes", hostlist.Text(names))
	}
	return err
}

// CreateReservation creates a reservation, and logs it.
func (s slurmClient) CreateReservation(ctx context.Context, reservation slurm.Reservation) error {
	err := s.Client.CreateReservation(ctx, reservation)
	if err == nil {
		log.FromContext(ctx).
			Info("created Slurm reservation", "name", reservation.Name, "nodes", reservation.Nodes, "start",
				reservation.Start, "end", reservation.End)
	}
	return err
}

// DeleteReservation deletes a reservation, and logs it.
func (s slurmClient) DeleteReservation(ctx context.Context, name string) error {
	err := s.Client.DeleteReservation(ctx, name)
	if err == nil {
		log.FromContext(ctx).Info("deleted Slurm reservation", "name", name)
	}
	return err
}

// Requests returns an observer that logs each request to a cluster at level debug and passes it to the next observer.
func Requests(logger logr.Logger, cluster slurm.Key, next slurm.Observer) slurm.Observer {
	return requests{logger.WithValues("cluster", cluster.String()).V(debug), next}
}

type requests struct {
	logger logr.Logger
	next   slurm.Observer
}

// ObserveRequest logs a request.
func (r requests) ObserveRequest(request slurm.Observation) {
	r.logger.Info("Slurm request", "call", request.Call, "result", request.Result, "duration",
		request.Duration.String(), "bytes", request.Received)
	r.next.ObserveRequest(request)
}
