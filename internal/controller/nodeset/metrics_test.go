package nodeset

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/metric"
)

func TestWaitsAreCountedUntilTheyEnd(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "gpu"}}
	jobs := func(until time.Time) plan.Wait { return plan.Wait{Hold: plan.Hold{Kind: plan.Jobs, Until: until}} }
	expect := func(lines ...string) {
		t.Helper()
		var want strings.Builder
		for _, definition := range []metric.Definition{metric.WaitingPods, metric.WaitEnd} {
			head := "# HELP " + definition.Name + " " + definition.Help + "\n# TYPE " + definition.Name + " gauge\n"
			for _, line := range lines {
				if strings.HasPrefix(line, definition.Name+"{") {
					want.WriteString(head + line + "\n")
					head = ""
				}
			}
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want.String()), metric.WaitingPods.Name,
			metric.WaitEnd.Name); err != nil {
			t.Error(err)
		}
	}
	const pods = `slurm_operator_nodeset_waiting_pods{for="jobs",nodeset="gpu",nodeset_namespace="hpc"} `
	metrics.waiting(set, &plan.Plan{Waits: []plan.Wait{
		jobs(noon), jobs(noon.Add(time.Hour)), {Hold: plan.Hold{Kind: plan.Canary}},
	}})
	expect(`slurm_operator_nodeset_waiting_pods{for="canary",nodeset="gpu",nodeset_namespace="hpc"} 1`, pods+"2",
		`slurm_operator_nodeset_wait_end_timestamp_seconds{nodeset="gpu",nodeset_namespace="hpc"} 1.7723700e+09`)
	metrics.waiting(set, &plan.Plan{Waits: []plan.Wait{jobs(noon), jobs(time.Time{})}})
	expect(pods + "2") // one job has no time limit
	metrics.waiting(set, &plan.Plan{})
	expect()
	metrics.waiting(set, &plan.Plan{Waits: []plan.Wait{jobs(noon)}})
	metrics.forget(set)
	expect()
}
