package slurmcli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
)

// A Load is what slurmd last measured. A pod sees its whole Kubernetes node, also what others use of it.
type Load struct {
	// CPUs is the load average; nil if slurmd has reported none.
	CPUs *float64
	// FreeMemory is in MiB; nil if slurmd has reported none.
	FreeMemory *int64
}

// NodesAndLoads reads all Slurm nodes, and the loads by name. The operator's record of a node has no load, because that
// changes with every report of slurmd.
func (run Runner) NodesAndLoads(ctx context.Context) ([]slurm.Node, map[string]Load, error) {
	printed, err := run.printNodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := rest.ReadNodes(bytes.NewReader(printed))
	if err != nil {
		return nil, nil, err
	}
	loads, err := parseLoads(printed)
	return nodes, loads, err
}

// noValue is how Slurm writes an unknown number, unless it writes it as an object.
const noValue = 0xfffffffe

// A number is one that Slurm writes plainly or as an object that says whether it is set.
type number struct{ value *int64 }

// UnmarshalJSON reads both forms.
func (n *number) UnmarshalJSON(text []byte) error {
	var object struct {
		Set    bool  `json:"set"`
		Number int64 `json:"number"`
	}
	if len(text) > 0 && text[0] == '{' {
		err := json.Unmarshal(text, &object)
		if object.Set {
			n.value = &object.Number
		}
		return err
	}
	var plain int64
	if err := json.Unmarshal(text, &plain); err != nil {
		return err
	}
	if plain < noValue {
		n.value = &plain
	}
	return nil
}

func parseLoads(printed []byte) (map[string]Load, error) {
	var answer struct {
		Nodes []struct {
			Name       string `json:"name"`
			CPULoad    number `json:"cpu_load"` // in hundredths
			FreeMemory number `json:"free_mem"`
		} `json:"nodes"`
	}
	if err := json.Unmarshal(printed, &answer); err != nil {
		return nil, fmt.Errorf("reading the load of nodes: %w", err)
	}
	loads := make(map[string]Load, len(answer.Nodes))
	for _, node := range answer.Nodes {
		load := Load{FreeMemory: node.FreeMemory.value}
		if hundredths := node.CPULoad.value; hundredths != nil {
			load.CPUs = new(float64(*hundredths) / 100)
		}
		loads[node.Name] = load
	}
	return loads, nil
}
