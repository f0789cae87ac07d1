//go:build scale

package scale_test

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/test/cluster/controlplane"
	"github.com/slurm-operator/slurm-operator/test/scale"
	"github.com/slurm-operator/slurm-operator/test/scale/simulated"
)

var placed = flag.Int("placed", 1000, "how many pods are placed, each on its own node")

// TestPlacement measures the scheduler's cost of placing slurmd pods on separate nodes, for each way to do that in
// Kubernetes.
func TestPlacement(t *testing.T) {
	report := placementReport{Pods: *placed, Cores: runtime.NumCPU()}
	for _, way := range waysApart {
		passed := t.Run(way.name, func(t *testing.T) {
			cluster := simulated.Start(t, simulated.Options{Nodes: *placed})
			report.Kubernetes = versionOf(t, cluster)
			template := slurmdTemplate(t)
			way.constrain(t, &template)
			before := cluster.UsageOf(t, controlplane.Scheduler).CPU.Seconds()
			result := scale.Measure(t, cluster, statefulSetOf(cluster.Client, *placed, template))
			report.Rows = append(report.Rows, placement{
				Way: way.name, Ready: result.Ready, SchedulerCPU: result.CreationCPU[controlplane.Scheduler] - before,
			})
		})
		if !passed {
			t.FailNow()
		}
	}
	section := ""
	if *docsTable != "" {
		section = "placement"
	}
	publish(t, report, "scale-placement.json", section)
}

var waysApart = []struct {
	name      string
	constrain func(*testing.T, *corev1.PodTemplateSpec)
}{
	{"not at all (oversubscribeNode: true)", func(*testing.T, *corev1.PodTemplateSpec) {}},
	{"pod anti-affinity (the default)", func(t *testing.T, template *corev1.PodTemplateSpec) {
		t.Helper()
		set := newNodeSet(1)
		set.Spec.OversubscribeNode = false
		apart, err := worker.Template(worker.Set{NodeSet: set, Controller: newController()})
		if err != nil {
			t.Fatal(err)
		}
		template.Spec.Affinity = apart.Spec.Affinity
	}},
	{"topology spread constraint", func(_ *testing.T, template *corev1.PodTemplateSpec) {
		template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: naming.DaemonSelector(naming.Slurmd)},
		}}
	}},
	{"host port", func(_ *testing.T, template *corev1.PodTemplateSpec) {
		ports := template.Spec.Containers[0].Ports
		template.Spec.Containers[0].Ports = append(ports, corev1.ContainerPort{
			Name: "apart", ContainerPort: 6819, HostPort: 6819,
		})
	}},
}

// A placementReport is the cost of each way.
type placementReport struct {
	Kubernetes  string      `json:"kubernetes"`
	Pods, Cores int         `json:",omitempty"`
	Rows        []placement `json:"rows"`
}

type placement struct {
	Way          string  `json:"way"`
	Ready        float64 `json:"readySeconds"`
	SchedulerCPU float64 `json:"schedulerCPUSeconds"`
}

// Markdown renders the report as a table.
func (r placementReport) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Kubernetes %s, %d cores, %d pods of a StatefulSet on %d simulated nodes.\n\n", r.Kubernetes,
		r.Cores, r.Pods, r.Pods)
	b.WriteString("| Kept apart by | All Ready after, s | Scheduler: CPU seconds | ms a pod |\n|---|--:|--:|--:|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f |\n", row.Way, row.Ready, row.SchedulerCPU,
			1000*row.SchedulerCPU/float64(r.Pods))
	}
	return b.String()
}
