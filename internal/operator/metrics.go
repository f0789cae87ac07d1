package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A collector collects metrics of sessions and objects. It reads only memory, and only when it is scraped.
type collector struct {
	pool   *slurm.Pool
	reader client.Client
}

var (
	reachableMetric = prometheus.NewDesc("slurm_operator_slurm_reachable",
		"Whether slurmctld answers (1) or not (0).", []string{"controller_namespace", "controller"}, nil)
	snapshotAgeMetric = prometheus.NewDesc("slurm_operator_slurm_snapshot_age_seconds",
		"Time since the list of Slurm nodes was last read. It grows while nothing changes in a large "+
			"cluster at rest.",
		[]string{"controller_namespace", "controller"}, nil)
	nodesMetric = prometheus.NewDesc("slurm_operator_slurm_nodes",
		"Nodes that slurmctld knows.", []string{"controller_namespace", "controller"}, nil)
	nodeSetNodesMetric = prometheus.NewDesc("slurm_operator_nodeset_nodes",
		"Slurm nodes of a NodeSet by state; a drained node also counts under its base state.",
		[]string{"nodeset_namespace", "nodeset", "state"}, nil)
	conditionMetric = prometheus.NewDesc("slurm_operator_condition",
		"Conditions of objects; the value is always 1, and status is True, False or Unknown.",
		[]string{"kind", "object_namespace", "name", "condition", "status", "reason"}, nil)
)

// Describe sends the descriptions of the metrics.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{reachableMetric, snapshotAgeMetric, nodesMetric, nodeSetNodesMetric,
		conditionMetric} {
		descriptions <- description
	}
}

// Collect sends the values of the metrics.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	c.collectSessions(metrics)
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	c.collectNodeSets(ctx, metrics)
	c.collectConditions(ctx, metrics)
}

func (c *collector) collectSessions(metrics chan<- prometheus.Metric) {
	gauge := func(description *prometheus.Desc, value float64, key slurm.Key) {
		metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, key.Namespace, key.Name)
	}
	for _, key := range c.pool.Keys() {
		session, ok := c.pool.Get(key)
		if !ok {
			continue
		}
		reachable := 0.0
		if session.Status().Reachable {
			reachable = 1
		}
		gauge(reachableMetric, reachable, key)
		if snapshot := session.Mirror.Snapshot(); snapshot != nil {
			gauge(snapshotAgeMetric, time.Since(snapshot.NodesAsOf).Seconds(), key)
			gauge(nodesMetric, float64(len(snapshot.Nodes)), key)
		}
	}
}

// scrapeTimeout is the deadline of a scrape; the cache answers at once, unless it is not synced yet.
const scrapeTimeout = 5 * time.Second

func (c *collector) collectNodeSets(ctx context.Context, metrics chan<- prometheus.Metric) {
	sets := &slinkyv1beta1.NodeSetList{}
	if err := c.reader.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
		return // the cache is not synced yet; the next scrape will succeed
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		for state, nodes := range map[string]int32{
			"idle": set.Status.SlurmIdle, "allocated": set.Status.SlurmAllocated, "down": set.Status.SlurmDown,
			"drain": set.Status.SlurmDrain,
		} {
			metrics <- prometheus.MustNewConstMetric(nodeSetNodesMetric, prometheus.GaugeValue, float64(nodes),
				set.Namespace, set.Name, state)
		}
	}
}

func (c *collector) collectConditions(ctx context.Context, metrics chan<- prometheus.Metric) {
	for _, kind := range kinds() {
		made, err := c.reader.Scheme().New(slinkyv1beta1.SchemeGroupVersion.WithKind(kind + "List"))
		list, ok := made.(client.ObjectList)
		if err != nil || !ok {
			panic(fmt.Sprintf("the scheme has no list of %s: %v", kind, err)) // kinds come from the scheme
		}
		if err := c.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			continue // the cache is not synced yet; the next scrape will succeed
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			for _, condition := range conditionsOf(item) {
				object, ok := item.(client.Object)
				if !ok {
					continue
				}
				metrics <- prometheus.MustNewConstMetric(conditionMetric, prometheus.GaugeValue, 1,
					kind, object.GetNamespace(), object.GetName(), condition.Type, string(
						condition.Status), condition.Reason)
			}
			return nil
		})
	}
}

func conditionsOf(object runtime.Object) []metav1.Condition {
	switch object := object.(type) {
	case *slinkyv1beta1.Controller:
		return object.Status.Conditions
	case *slinkyv1beta1.Accounting:
		return object.Status.Conditions
	case *slinkyv1beta1.RestApi:
		return object.Status.Conditions
	case *slinkyv1beta1.LoginSet:
		return object.Status.Conditions
	case *slinkyv1beta1.NodeSet:
		return object.Status.Conditions
	case *slinkyv1beta1.Token:
		return object.Status.Conditions
	}
	return nil
}
