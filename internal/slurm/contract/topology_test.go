//nolint:thelper // this is a test of the suite, not a helper
package contract

import (
	"errors"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

func testTopology(t *testing.T, c cluster) {
	assign := func(names []string, unit string) error {
		return c.UpdateNodes(t.Context(), names, slurm.NodeUpdate{Topology: &unit})
	}
	err := assign(both, "topo-switch:s2")
	if c.old() {
		if !errors.Is(err, slurm.Unsupported) {
			t.Errorf("24.11 cannot assign single nodes to topology units, but returned %v", err)
		}
		return
	}
	must(t, err)
	for _, name := range both {
		if node := c.node(t, name); node.Topology != "topo-switch:s2" {
			t.Errorf("%s is at %q", name, node.Topology)
		}
	}
	for _, missing := range []string{"topo-switch:s9", "elsewhere:s1"} {
		if err := assign(both[:1], missing); !slurm.ErrorNumber(err, slurm.NumberTopology) ||
			!errors.Is(err, slurm.Rejected) {
			t.Errorf("missing topology unit %s: %v", missing, err)
		}
		if node := c.node(t, "node-0"); node.Topology != "topo-switch:s2" || node.Draining() {
			t.Errorf("after that the node is %v at %q", node.StateNames(), node.Topology)
		}
	}
	must(t, assign(both, ""))
	if node := c.node(t, "node-1"); node.Topology != "" {
		t.Errorf("after the removal it is at %q", node.Topology)
	}
}
