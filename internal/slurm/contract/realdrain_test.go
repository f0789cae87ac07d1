//go:build slurm

package contract

import (
	"fmt"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// Slurm itself drains a node if its prolog fails. That must not count as a drain of ours, whatever the previous reason
// was.
func TestDrainSetBySlurmIsNotTreatedAsOurs(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			target := realSlurm{
				slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 1, ExtraConf: "Prolog=/bin/false"}),
				version,
			}
			c := cluster{target, connect(t, target, always(target.token("root")))}
			c.drain(t, slurm.OurReason("update"), "node-0")
			must(t, c.UpdateNodes(t.Context(), []string{"node-0"}, slurm.NodeUpdate{
				State: slurm.Undrain, Reason: slurm.NoReason,
			}))
			c.waitIdle(t)
			target.command(t, "sbatch", "--wrap=true")
			eventually(t, "Slurm to drain the node", func() error {
				if node := c.node(t, "node-0"); !node.Draining() {
					return fmt.Errorf("it is %v", node.StateNames())
				}
				return nil
			})
			if node := c.node(t, "node-0"); !node.HeldByOthers() {
				t.Errorf("the node is %v, %q, and its drain would be lifted", node.StateNames(), node.Reason)
			}
		})
	}
}
