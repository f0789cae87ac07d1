package rest

import (
	"fmt"
	"io"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// PrintedVersion is the version of the JSON that ReadNodes is asked to read: the only one that all supported releases
// of Slurm's commands print.
const PrintedVersion = "v0.0.42"

// ReadNodes reads the nodes that "scontrol --json show nodes" prints, which is what slurmrestd answers.
func ReadNodes(printed io.Reader) ([]slurm.Node, error) {
	var nodes []slurm.Node
	reasons, err := decodeAnswer(printed, fields{"nodes": eachNode(&nodes)}, "nodes")
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading nodes: %w", err)
	case len(reasons) > 0:
		return nil, &slurm.Error{Kind: slurm.Rejected, Op: "show nodes", Reasons: reasons}
	}
	return nodes, nil
}
