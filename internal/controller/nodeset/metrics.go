package nodeset

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/metric"
)

// Metrics are those of the NodeSet controller that need its plans; the operator reads others from statuses.
type Metrics struct {
	actions        *prometheus.CounterVec
	waits, waitEnd *prometheus.GaugeVec
	drains         *prometheus.HistogramVec
	powerUps       *prometheus.HistogramVec
	powerUpPhases  *prometheus.HistogramVec
	bill           *bill
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	metrics := &Metrics{
		actions: metric.Actions.NewCounter(), waits: metric.WaitingPods.NewGauge(), waitEnd: metric.WaitEnd.NewGauge(),
		drains: metric.DrainDuration.NewHistogram(), powerUps: metric.PowerUpDuration.NewHistogram(),
		powerUpPhases: metric.PowerUpPhase.NewHistogram(), bill: newBill(),
	}
	for _, collector := range []prometheus.Collector{metrics.actions, metrics.waits, metrics.waitEnd,
		metrics.drains, metrics.powerUps, metrics.powerUpPhases, metrics.bill} {
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
		m.drains.WithLabelValues().Observe(scope.now.Sub(since).Seconds())
	}
}

// waiting sets how many pods of a NodeSet wait, for what, and until when. A series stays while its value does, so that
// no scrape misses it.
func (m *Metrics) waiting(set *slinkyv1beta1.NodeSet, next *plan.Plan) {
	byKind := map[plan.HoldKind]int{}
	for _, wait := range next.Waits {
		byKind[wait.Hold.Kind]++
	}
	for kind := plan.NotHeld; kind <= plan.Unidentified; kind++ {
		if pods := byKind[kind]; pods > 0 {
			m.waits.WithLabelValues(set.Namespace, set.Name, kind.String()).Set(float64(pods))
		} else {
			m.waits.DeleteLabelValues(set.Namespace, set.Name, kind.String())
		}
	}
	if end := waitEnd(next.Waits); end.IsZero() {
		m.waitEnd.DeleteLabelValues(set.Namespace, set.Name)
	} else {
		m.waitEnd.WithLabelValues(set.Namespace, set.Name).Set(float64(end.Unix()))
	}
}

// waitEnd returns when the last of the jobs that pods wait for ends at the latest; zero if there is none, or one has no
// time limit.
func waitEnd(waits []plan.Wait) time.Time {
	var end time.Time
	for _, wait := range waits {
		switch until := wait.Hold.Until; {
		case wait.Hold.Kind != plan.Jobs:
		case until.IsZero():
			return time.Time{}
		case until.After(end):
			end = until
		}
	}
	return end
}

// forget deletes the metrics of a NodeSet.
func (m *Metrics) forget(set *slinkyv1beta1.NodeSet) {
	m.waits.DeletePartialMatch(labelsOf(set))
	m.waitEnd.DeletePartialMatch(labelsOf(set))
	m.powerUps.DeletePartialMatch(labelsOf(set))
	m.powerUpPhases.DeletePartialMatch(labelsOf(set))
	m.bill.forget(set)
}

func labelsOf(set *slinkyv1beta1.NodeSet) prometheus.Labels {
	return prometheus.Labels{"nodeset_namespace": set.Namespace, "nodeset": set.Name}
}
