package rest

import (
	"bytes"
	"strings"
	"testing"
)

func TestReadNodesReadsWhatSlurmrestdAnswers(t *testing.T) {
	for name, body := range recorded(t, "nodes") {
		nodes, err := ReadNodes(bytes.NewReader(body))
		if err != nil || len(nodes) != 2 {
			t.Errorf("%s: %d nodes: %v", name, len(nodes), err)
		}
	}
}

func TestReadNodesReturnsErrors(t *testing.T) {
	for name, printed := range map[string]string{
		"an error of Slurm": `{"nodes":[],"errors":[{"error_number":1800,"error":"Unable to contact slurm controller"}]}`,
		"no JSON":           "scontrol: error: plugin not found",
		"no nodes":          `{"errors":[]}`,
		"a cut-off answer":  `{"nodes":[],"errors":[`,
	} {
		if nodes, err := ReadNodes(strings.NewReader(printed)); err == nil {
			t.Errorf("%s: %+v", name, nodes)
		}
	}
}
