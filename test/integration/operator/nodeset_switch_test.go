//go:build integration

package operator_test

import (
	"fmt"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A NodeSet that is no longer elastic gets its pods when its records have left slurm.conf and slurmctld. When it is
// elastic again, its pods are replaced by records one after the other.
func TestElasticNodeSetBecomesFixed(t *testing.T) {
	t.Parallel()
	w := newElasticWorld(t, 2)
	w.patch(t, w.set, `{"spec":{"elastic":null,"replicas":2}}`)
	for _, name := range []string{"gpu-0", "gpu-1"} {
		w.node(t, name, "closed", func(node *slurm.Node) bool { return node.DrainedByUs() })
	}
	w.inForce(t, nil, "NodeName=")
	w.hasPods(t) // slurmctld has not read it yet
	w.slurm.ForgetNode("gpu-0")
	w.slurm.ForgetNode("gpu-1")
	w.hasPods(t, "gpu-0", "gpu-1")
	w.ready(t)

	job := w.submit(t, 1, forever)
	w.jobIs(t, job, "RUNNING") // on the first node
	w.patch(t, w.set, `{"spec":{"replicas":null,"elastic":{"maxReplicas":3,"idleTimeout":"10s","startTimeout":"30s"}}}`)
	record := func(nodes string) {
		t.Helper()
		w.inForce(t, []string{fmt.Sprintf("NodeName=%s State=CLOUD Features=gpu CPUs=2 RealMemory=500", nodes)})
	}
	record("gpu-2")
	w.hasPods(t, "gpu-0", "gpu-1") // slurmctld does not have the record yet
	w.slurm.AddCloudNodes("gpu-2")
	record("gpu-[1-2]")
	w.slurm.AddCloudNodes("gpu-1")
	w.cancelJob(t, job)
	record("gpu-[0-2]")
	w.slurm.AddCloudNodes("gpu-0")
	w.hasPods(t)
	w.ready(t)
}
