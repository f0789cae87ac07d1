package plan_test

import (
	"slices"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

func TestCauseOfDrain(t *testing.T) {
	for reason, want := range map[string]plan.Cause{
		slurm.OurReason("scale-in"):                            plan.ScaleIn,
		slurm.OurReason("update"):                              plan.Updating,
		slurm.OurReason("NodeSet is being deleted"):            plan.Deletion,
		slurm.OurReason("pod is cordoned"):                     plan.PodCordon,
		slurm.OurReason("no capacity in Kubernetes"):           plan.NoCapacity,
		slurm.OurReason("its pod did not start in time"):       plan.NotStarted,
		slurm.OurReason("Kubernetes node node-1 is cordoned"):  plan.FromKubernetesNode,
		slurm.OurReason("a reason from the node's annotation"): plan.FromKubernetesNode,
	} {
		if cause, ours := plan.CauseOf(reason); cause != want || !ours || !slices.Contains(plan.DrainCauses(), cause) {
			t.Errorf("%q: %s, %t", reason, cause, ours)
		}
	}
	for _, reason := range []string{"", "update", "broken fan"} {
		if cause, ours := plan.CauseOf(reason); cause != plan.NoCause || ours {
			t.Errorf("%q: %s, %t", reason, cause, ours)
		}
	}
}
