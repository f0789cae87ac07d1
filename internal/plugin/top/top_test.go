package top

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
)

func TestGPUsOfAGRES(t *testing.T) {
	for gres, want := range map[string]map[string]int64{
		"":                               {},
		"gpu:8":                          {"": 8},
		"gpu":                            {"": 1},
		"gpu:h100:8(S:0-1)":              {"h100": 8},
		"gpu:h100:3(IDX:0,2-3),shard:12": {"h100": 3},
		"gpu:a100:2,gpu:h100:4,nic:1":    {"a100": 2, "h100": 4},
		"gpu:a100:2(S:0),gpu:a100:2":     {"a100": 4},
	} {
		if diff := cmp.Diff(want, gpus(gres)); diff != "" {
			t.Errorf("%q: %s", gres, diff)
		}
	}
}

func TestFreeResourcesOfClosedNodesAreNotFree(t *testing.T) {
	result := Add(&Input{Nodes: []nodes.Node{
		{Name: "a", State: "MIXED", CPUs: 8, AllocatedCPUs: 2, GRES: "gpu:4", GRESUsed: "gpu:1(IDX:0)"},
		{Name: "b", State: "MIXED+DRAIN", Closed: true, CPUs: 8, AllocatedCPUs: 6, GRES: "gpu:4", GRESUsed: "gpu:3(IDX:0-2)"},
	}}, GPUs)
	want := &Result{
		Totals: Totals{
			CPUs: Amount{Allocated: 8, Total: 16, Closed: 2}, GPUs: Amount{Allocated: 4, Total: 8, Closed: 1},
		},
		GPUs: []GPUType{{Amount: Amount{Allocated: 4, Total: 8, Closed: 1}, Nodes: 2}},
	}
	if diff := cmp.Diff(want, result, cmpopts.IgnoreUnexported(Result{})); diff != "" {
		t.Error(diff)
	}
}

func TestTasksOfAnArrayCountEach(t *testing.T) {
	result := Add(&Input{Jobs: []slurmcli.Allocation{
		{User: "alice", Jobs: 1, CPUs: 4, Memory: 100, GPUs: 1},
		{User: "alice", Pending: true, Jobs: 10, CPUs: 2, GPUs: 1},
	}}, Users)
	want := []Share{{
		Name: "alice", Running: 1, CPUs: 4, Memory: 100, GPUs: 1, Pending: 10, PendingCPUs: 20, PendingGPUs: 10,
	}}
	if diff := cmp.Diff(want, result.Users); diff != "" || result.Totals.Pending != 10 {
		t.Errorf("%d pending\n%s", result.Totals.Pending, diff)
	}
}

func TestLargestIsFirstAndEqualsAreByName(t *testing.T) {
	result := &Result{Nodes: []Node{
		{Name: "gpu-10", Load: new(1.0)}, {Name: "gpu-9", Load: new(1.0)}, {Name: "gpu-1"}, {Name: "gpu-2", Load: new(7.0)},
	}}
	result.Sort(byLoad)
	var names []string
	for _, node := range result.Nodes {
		names = append(names, node.Name)
	}
	if diff := cmp.Diff([]string{"gpu-2", "gpu-9", "gpu-10", "gpu-1"}, names); diff != "" {
		t.Error(diff)
	}
}
