//go:build scale

package scale_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
	"github.com/slurm-operator/slurm-operator/test/scale"
	"github.com/slurm-operator/slurm-operator/test/scale/simulated"
)

var rounds = flag.Int("rounds", 3, "how often the creation of a NodeSet is compared with that of a StatefulSet")

// TestCreation compares the creation and scale-in of a NodeSet with a StatefulSet of the same pods, which has a
// headless Service, too. It does so several times and in alternating order, because a single comparison depends on what
// else the computer does.
func TestCreation(t *testing.T) {
	report := scale.CreationReport{Cores: runtime.NumCPU(), Nodes: *nodes}
	for _, pods := range podCounts(t) {
		for round := range *rounds {
			var result scale.CreationRound
			for step := range 2 {
				if !t.Run(fmt.Sprintf("%d pods, round %d, step %d", pods, round+1, step+1), func(t *testing.T) {
					if (round+step)%2 == 0 {
						result.StatefulSet, report.Kubernetes = createStatefulSet(t, pods)
					} else {
						result.NodeSet = createNodeSet(t, pods)
					}
				}) {
					t.FailNow()
				}
			}
			report.Rounds = append(report.Rounds, result)
		}
	}
	section := ""
	if *docsTable != "" {
		section = "creation"
	}
	publish(t, report, "scale-creation.json", section)
}

func createStatefulSet(t *testing.T, pods int) (result scale.Result, version string) {
	t.Helper()
	cluster := simulated.Start(t, simulated.Options{Nodes: *nodes})
	// their pod watch costs the same as with the NodeSet
	scale.SimulateSlurmds(t, cluster, slurmtest.New(t, slurmtest.Release2605))
	set := statefulSetWithService(cluster.Client, pods, slurmdTemplate(t))
	return scale.Measure(t, cluster, set), versionOf(t, cluster)
}

func createNodeSet(t *testing.T, pods int) scale.Result {
	t.Helper()
	b := newBench(t, simulated.Start(t, simulated.Options{Nodes: *nodes}), pods, newController())
	return scale.Measure(t, b.cluster, scale.Workload{
		Kind: "NodeSet", Pods: pods, Selector: slinkyv1beta1.LabelPodHostname, Users: []string{scale.OperatorUser},
		Create:  func(ctx context.Context) error { return b.Create(ctx, newNodeSet(pods)) },
		Settled: func(ctx context.Context) (bool, error) { return b.settled(ctx, pods) },
		Delete:  func(ctx context.Context) error { return b.patchSet(ctx, `{"spec":{"replicas":0}}`) },
	})
}
