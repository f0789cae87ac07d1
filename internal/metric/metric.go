// Package metric defines the operator's metrics: their names, types, labels and meanings.
//
// The packages that measure build their collectors from these definitions, and docs/reference/metrics.md is generated
// from them, so that a metric without a description does not exist. No label has the name of a Slurm node, a job or a
// user: the number of series must not grow with them.
package metric

import (
	"github.com/prometheus/client_golang/prometheus"
)

// A Type is the type of a metric, as Prometheus names it.
type Type string

// The types.
const (
	Gauge     Type = "gauge"
	Counter   Type = "counter"
	Histogram Type = "histogram"
)

// A Definition describes a metric.
type Definition struct {
	Name   string
	Type   Type
	Labels []string
	// Help is the meaning, for the reference and for Prometheus. It has no full stop, as in Prometheus' own tables.
	Help string
	// Buckets are those of a histogram.
	Buckets []float64
}

// Desc returns the description for a collector that creates its values at each scrape.
func (d Definition) Desc() *prometheus.Desc { return prometheus.NewDesc(d.Name, d.Help, d.Labels, nil) }

// NewCounter returns a counter.
func (d Definition) NewCounter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
}

// NewGauge returns a gauge.
func (d Definition) NewGauge() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.Labels)
}

// NewHistogram returns a histogram.
func (d Definition) NewHistogram() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets}, d.Labels)
}

// A Group is the metrics about one subject.
type Group struct {
	Title   string
	Metrics []Definition
}

// Groups returns all metrics.
func Groups() []Group {
	return []Group{
		{"Slurm clusters", []Definition{
			Reachable, Info, SnapshotAge, Nodes, PartitionNodes, CPUs, PartitionCPUs, Memory, GPUs, Jobs, PartitionJobs,
			PendingJobs, QueuePartial, DrainedNodes, OldestDrain,
		}},
		{"NodeSets", []Definition{
			NodeSetInfo, NodeSetNodes, DesiredPods, Pods, ReadyPods, AvailablePods, OutdatedPods, WaitingPods, WaitEnd,
			Actions, DrainDuration, NodeSeconds, PowerUpDuration, PowerUpPhase,
		}},
		{"Conditions, tokens and certificates", []Definition{
			Condition, ConditionTransition, TokenIssued, TokenExpiry, RestAPICertificateExpiry,
			CertificateExpiry,
		}},
		{"Requests to slurmrestd", []Definition{Requests, RequestDuration, ReceivedBytes}},
	}
}
