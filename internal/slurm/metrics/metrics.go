// Package metrics counts the requests to Slurm for Prometheus.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/slurm-operator/slurm-operator/internal/metric"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// Requests are the metrics of all requests to all clusters.
type Requests struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	received *prometheus.CounterVec
}

// NewRequests registers the metrics.
func NewRequests(registerer prometheus.Registerer) (*Requests, error) {
	requests := &Requests{
		total: metric.Requests.NewCounter(), duration: metric.RequestDuration.NewHistogram(),
		received: metric.ReceivedBytes.NewCounter(),
	}
	for _, collector := range []prometheus.Collector{requests.total, requests.duration, requests.received} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return requests, nil
}

// For returns the observer for the client of a cluster.
func (r *Requests) For(cluster slurm.Key) slurm.Observer {
	labels := prometheus.Labels{"controller_namespace": cluster.Namespace, "controller": cluster.Name}
	return &observer{
		total: r.total.MustCurryWith(labels), duration: r.duration.MustCurryWith(labels),
		received: r.received.MustCurryWith(labels),
	}
}

// Forget removes the series of a deleted cluster.
func (r *Requests) Forget(cluster slurm.Key) {
	labels := prometheus.Labels{"controller_namespace": cluster.Namespace, "controller": cluster.Name}
	r.total.DeletePartialMatch(labels)
	r.duration.DeletePartialMatch(labels)
	r.received.DeletePartialMatch(labels)
}

type observer struct {
	total    *prometheus.CounterVec
	duration prometheus.ObserverVec
	received *prometheus.CounterVec
}

// ObserveRequest counts a request.
func (o *observer) ObserveRequest(observation slurm.Observation) {
	o.total.WithLabelValues(observation.Call, observation.Result).Inc()
	o.duration.WithLabelValues(observation.Call).Observe(observation.Duration.Seconds())
	o.received.WithLabelValues(observation.Call).Add(float64(observation.Received))
}
