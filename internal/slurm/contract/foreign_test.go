//nolint:thelper // these are the tests of the suite, not helpers
package contract

import (
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A drain of ours on a node that an administrator has set to FAIL would clear FAIL and its reason.
func testForeignFail(t *testing.T, c cluster) {
	set := func(update slurm.NodeUpdate) slurm.Node {
		t.Helper()
		must(t, c.UpdateNodes(t.Context(), []string{"node-1"}, update))
		return c.node(t, "node-1")
	}
	node := set(slurm.NodeUpdate{State: slurm.Fail, Reason: "XID 79"})
	if !node.HeldByOthers() || !node.Drained() || node.Draining() || node.Reason != "XID 79" {
		t.Errorf("a failing node is %v, %q", node.StateNames(), node.Reason)
	}
	node = set(slurm.NodeUpdate{State: slurm.Drain, Reason: slurm.OurReason("update")})
	if node.Flags.Has(slurm.FlagFail) || !node.DrainedByUs() {
		t.Errorf("a failing node that is drained is %v, %q: a drain of ours may be set on top", node.StateNames(),
			node.Reason)
	}
	node = set(slurm.NodeUpdate{State: slurm.Fail, Reason: "XID 79"})
	if node.Draining() || !node.HeldByOthers() {
		t.Errorf("a drained node that is failing is %v, %q", node.StateNames(), node.Reason)
	}
	must(t, c.UpdateNodes(t.Context(), []string{"node-1"}, slurm.NodeUpdate{State: slurm.Resume}))
	c.waitIdle(t)
}

// Our reason must be cleared with its drain, because Slurm itself does not overwrite an existing reason.
func testOurReasonIsCleared(t *testing.T, c cluster) {
	ours := slurm.OurReason("update")
	c.drain(t, ours, "node-1")
	must(t, c.UpdateNodes(t.Context(), []string{"node-1"}, slurm.NodeUpdate{
		State: slurm.Undrain, Reason: slurm.NoReason,
	}))
	c.waitIdle(t)
	if node := c.node(t, "node-1"); slurm.IsOurReason(node.Reason) || node.Closed() {
		t.Errorf("after the drain the node is %v, %q", node.StateNames(), node.Reason)
	}
	c.drain(t, ours, "node-1")
	c.undrain(t, "node-1") // as an administrator would
	if node := c.node(t, "node-1"); slurm.IsOurReason(node.Reason) != c.old() {
		t.Errorf("after an administrator lifted the drain, the reason is %q", node.Reason)
	}
	must(t, c.UpdateNodes(t.Context(), []string{"node-1"}, slurm.NodeUpdate{Reason: slurm.NoReason}))
	if node := c.node(t, "node-1"); slurm.IsOurReason(node.Reason) || node.Closed() {
		t.Errorf("after the reason was cleared, the node is %v, %q", node.StateNames(), node.Reason)
	}
	c.drain(t, ours, "node-1")
	c.undrain(t, "node-1")
}
