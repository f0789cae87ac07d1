package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// TestServiceMonitorScrapesTheActiveSlurmctld checks intervals and labels, and that a standby, which would serve every
// series a second time, is no target.
func TestServiceMonitorScrapesTheActiveSlurmctld(t *testing.T) {
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "slurm"}}
	controller.Spec.Metrics.ServiceMonitor = slinkyv1beta1.ServiceMonitor{
		Endpoints: []slinkyv1beta1.MetricsEndpoint{
			{Path: "/metrics/jobs"}, {Path: "/metrics/scheduler", Interval: "30s", ScrapeTimeout: "20s"},
		},
	}
	monitor := serviceMonitor(controller)
	got, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	if err != nil {
		t.Fatal(err)
	}
	relabelings := []any{
		map[string]any{
			"action": "drop", "sourceLabels": []any{"__meta_kubernetes_endpoint_ready"}, "regex": "false",
		},
		map[string]any{
			"action": "drop", "sourceLabels": []any{"__meta_kubernetes_endpointslice_endpoint_conditions_ready"},
			"regex": "false",
		},
		map[string]any{"action": "replace", "targetLabel": "controller_namespace", "replacement": "hpc"},
		map[string]any{"action": "replace", "targetLabel": "controller", "replacement": "slurm"},
	}
	want := []any{
		map[string]any{"port": "slurmctld", "path": "/metrics/jobs", "interval": "1m", "relabelings": relabelings},
		map[string]any{
			"port": "slurmctld", "path": "/metrics/scheduler", "interval": "30s", "scrapeTimeout": "20s",
			"relabelings": relabelings,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
}
