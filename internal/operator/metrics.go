package operator

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/metric"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// collected are the metrics that are computed at each scrape.
var collected = []metric.Definition{
	metric.Reachable, metric.Info, metric.SnapshotAge, metric.Nodes, metric.PartitionNodes, metric.CPUs,
	metric.PartitionCPUs, metric.Memory, metric.GPUs, metric.Jobs, metric.PartitionJobs, metric.PendingJobs,
	metric.QueuePartial, metric.DrainedNodes, metric.OldestDrain, metric.NodeSetInfo, metric.NodeSetNodes,
	metric.DesiredPods, metric.Pods, metric.ReadyPods, metric.AvailablePods, metric.OutdatedPods, metric.Condition,
	metric.ConditionTransition, metric.TokenIssued, metric.TokenExpiry, metric.RestAPICertificateExpiry,
}

// A collector collects metrics of sessions and objects. It reads only memory, and only when it is scraped, so that
// series end with their objects.
type collector struct {
	pool         *slurm.Pool
	reader       client.Client
	descriptions map[string]*prometheus.Desc
}

func newCollector(pool *slurm.Pool, reader client.Client) *collector {
	descriptions := map[string]*prometheus.Desc{}
	for _, definition := range collected {
		descriptions[definition.Name] = definition.Desc()
	}
	return &collector{pool: pool, reader: reader, descriptions: descriptions}
}

// Describe sends the descriptions of the metrics.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range c.descriptions {
		descriptions <- description
	}
}

// scrapeTimeout is the deadline of a scrape; the cache answers at once, unless it is not synced yet.
const scrapeTimeout = 5 * time.Second

// Collect sends the values of the metrics.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	send := func(definition metric.Definition, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(c.descriptions[definition.Name], prometheus.GaugeValue, value, labels...)
	}
	c.collectSessions(send)
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	c.collectObjects(ctx, send)
}

// A sender sends the value of a gauge with the values of its labels.
type sender func(definition metric.Definition, value float64, labels ...string)

func (c *collector) collectSessions(send sender) {
	for _, key := range c.pool.Keys() {
		session, ok := c.pool.Get(key)
		if !ok {
			continue
		}
		ofCluster := func(definition metric.Definition, value float64, labels ...string) {
			send(definition, value, append([]string{key.Namespace, key.Name}, labels...)...)
		}
		status := session.Status()
		ofCluster(metric.Reachable, boolean(status.Reachable))
		if status.Info != (slurm.Info{}) {
			ofCluster(metric.Info, 1, status.Info.Version.String(), status.Info.API)
		}
		if snapshot := session.Mirror.Snapshot(); snapshot != nil {
			ofCluster(metric.SnapshotAge, time.Since(snapshot.NodesAsOf).Seconds())
			collectSnapshot(snapshot, ofCluster)
		}
	}
}

func boolean(value bool) float64 {
	if value {
		return 1
	}
	return 0
}
