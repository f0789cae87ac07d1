package nodeset

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
)

// Metrics are those of the NodeSet controller.
type Metrics struct {
	actions *prometheus.CounterVec
	waits   *prometheus.GaugeVec
	drains  prometheus.Histogram
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	metrics := &Metrics{
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "slurm_operator_nodeset_actions_total", Help: "Actions taken for NodeSets, by action and cause.",
		}, []string{"action", "cause"}),
		waits: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "slurm_operator_nodeset_waiting_pods",
			Help: "Pods whose deletion waits, by NodeSet and by what they wait for.",
		}, []string{"nodeset_namespace", "nodeset", "for"}),
		drains: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "slurm_operator_nodeset_drain_seconds",
			Help:    "Time from the drain of a Slurm node to the deletion of its pod.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 10),
		}),
	}
	for _, collector := range []prometheus.Collector{metrics.actions, metrics.waits, metrics.drains} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return metrics, nil
}

// did counts an action.
func (m *Metrics) did(action plan.Action) {
	m.actions.WithLabelValues(string(action.Kind), string(action.Cause)).Inc()
}

// deleted observes how long the Slurm node of a deleted pod was drained.
func (m *Metrics) deleted(scope *scope, action plan.Action) {
	if since, drained := scope.snapshot.DrainedSince[action.SlurmNode]; drained {
		m.drains.Observe(scope.now.Sub(since).Seconds())
	}
}

// waiting sets how many pods of a NodeSet wait, and for what.
func (m *Metrics) waiting(set *slinkyv1beta1.NodeSet, next *plan.Plan) {
	m.waits.DeletePartialMatch(labelsOf(set))
	byKind := map[plan.HoldKind]int{}
	for _, wait := range next.Waits {
		byKind[wait.Hold.Kind]++
	}
	for kind, pods := range byKind {
		m.waits.WithLabelValues(set.Namespace, set.Name, kind.String()).Set(float64(pods))
	}
}

// forget deletes the metrics of a deleted NodeSet.
func (m *Metrics) forget(set *slinkyv1beta1.NodeSet) {
	m.waits.DeletePartialMatch(labelsOf(set))
}

func labelsOf(set *slinkyv1beta1.NodeSet) prometheus.Labels {
	return prometheus.Labels{"nodeset_namespace": set.Namespace, "nodeset": set.Name}
}
