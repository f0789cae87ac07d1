package cluster

import (
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

func TestMetricsWaitForOldNodes(t *testing.T) {
	const without, with = "ClusterName=e2e\n", "ClusterName=e2e\nMetricsType=metrics/openmetrics\n"
	nodes := func(versions ...string) *slurm.Snapshot {
		snapshot := &slurm.Snapshot{}
		for _, version := range versions {
			snapshot.Nodes = append(snapshot.Nodes, &slurm.Node{Version: version, State: slurm.StateIdle})
		}
		return snapshot
	}
	unheard := func(state slurm.State, flags slurm.Flags) *slurm.Snapshot {
		return &slurm.Snapshot{Nodes: []*slurm.Node{{State: state, Flags: flags}, {Version: "26.05.5", State: slurm.StateIdle}}}
	}
	for name, test := range map[string]struct {
		release  string
		promoted string
		nodes    *slurm.Snapshot
		on, wait bool
	}{
		"has none in a release without":                 {release: "24.11.5", promoted: without, nodes: nodes("24.11.5")},
		"has them from the start":                       {release: "26.05.5", on: true},
		"waits for a slurmd that would end at the key":  {release: "26.05.5", promoted: without, nodes: nodes("26.05.5", "24.11.5"), wait: true},
		"waits until it knows the nodes":                {release: "26.05.5", promoted: without, wait: true},
		"has them when all slurmds know the key":        {release: "26.05.5", promoted: without, nodes: nodes("26.05.5", "25.11.0"), on: true},
		"waits for idle nodes until they register":      {release: "26.05.5", promoted: without, nodes: unheard(slurm.StateIdle, 0), wait: true},
		"waits for nodes with jobs until they register": {release: "26.05.5", promoted: without, nodes: unheard(slurm.StateMixed, 0), wait: true},
		"waits for nodes that do not respond":           {release: "26.05.5", promoted: without, nodes: unheard(slurm.StateUnknown, slurm.FlagNotResponding), wait: true},
		"does not wait for nodes that are down":         {release: "26.05.5", promoted: without, nodes: unheard(slurm.StateDown, slurm.FlagNotResponding), on: true},
		"does not wait for nodes of the future":         {release: "26.05.5", promoted: without, nodes: unheard(slurm.StateFuture, 0), on: true},
		"does not wait for nodes that are off":          {release: "26.05.5", promoted: without, nodes: unheard(slurm.StateIdle, slurm.FlagPoweredDown), on: true},
		"keeps them":                                    {release: "26.05.5", promoted: with, on: true},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(func(scope *scope) {
				scope.controller.Spec.Metrics.Enabled = true
				scope.slurmVersion, scope.nodes = test.release, test.nodes
				if test.promoted != "" {
					scope.promoted = &promoted{image: "new", files: map[string]string{slurmConfFile: test.promoted}}
				}
			})
			candidate, problem := build(scope)
			if problem != nil {
				t.Fatal(problem.message)
			}
			if on := strings.Contains(candidate.files[slurmConfFile], "MetricsType"); on != test.on || metricsWait(scope) != test.wait {
				t.Errorf("metrics are on: %t, and wait: %t", on, metricsWait(scope))
			}
		})
	}
}
