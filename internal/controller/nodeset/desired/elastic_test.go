package desired

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// elasticSet returns an elastic NodeSet.
func elasticSet() *slinkyv1beta1.NodeSet {
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	set.Spec.ExtraConf = "CPUs=4 RealMemory=1000"
	set.Spec.Elastic = &slinkyv1beta1.NodeSetElastic{MaxReplicas: 3, MinReplicas: 1}
	return set
}

func TestElastic(t *testing.T) {
	const conf = "SlurmctldParameters=enable_configless,config_hash=abc\nResumeProgram=/bin/true\n" +
		"NodeName=gpu-[0,3] State=CLOUD Features=gpu CPUs=4 RealMemory=1000\n" +
		"NodeName=gpu-1 State=CLOUD Features=gpu CPUs=2 RealMemory=1000\n" +
		"NodeName=gpu-2 State=CLOUD Features=gpu CPUs=4 RealMemory=1000 Weight=7\n" +
		"NodeName=other-0 State=CLOUD CPUs=2\n"
	got := Elastic(elasticSet(), conf, "abc")
	want := &plan.Elastic{
		Min: 1, Max: 3, Idle: 10 * time.Minute, Start: 10 * time.Minute, Backoff: 10 * time.Minute,
		Slots: []plan.Slot{
			{Ordinal: 0, SlurmNode: "gpu-0"}, {Ordinal: 1, SlurmNode: "gpu-1", Outdated: true, Mismatched: true},
			{Ordinal: 2, SlurmNode: "gpu-2", Outdated: true}, {Ordinal: 3, SlurmNode: "gpu-3", Outdated: true},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, hash := range []string{"", "older"} {
		for _, slot := range Elastic(elasticSet(), conf, hash).Slots {
			if !slot.Pending {
				t.Errorf("%s is settled although slurmctld runs with configuration %q", slot.SlurmNode, hash)
			}
		}
	}
}

func TestEndedElastic(t *testing.T) {
	const conf = "SlurmctldParameters=enable_configless,config_hash=abc\nResumeProgram=/bin/true\n" +
		"NodeName=gpu-[0,3] State=CLOUD Features=gpu CPUs=4 RealMemory=1000\nNodeName=other-0 State=CLOUD CPUs=2\n"
	set := elasticSet()
	set.Spec.Elastic = nil
	nodes := []*slurm.Node{
		{Name: "gpu-0", Flags: slurm.FlagCloud},
		{Name: "gpu-1", Flags: slurm.FlagCloud}, // slurmctld has yet to read that its record was removed
		{Name: "gpu-2", Flags: slurm.FlagDynamicNorm},
		{Name: "other-1", Flags: slurm.FlagCloud},
	}
	want := &plan.Elastic{
		Ended: true, Idle: 10 * time.Minute, Start: 10 * time.Minute, Backoff: 10 * time.Minute,
		Slots: []plan.Slot{
			{Ordinal: 0, SlurmNode: "gpu-0", Outdated: true, Mismatched: true},
			{Ordinal: 1, SlurmNode: "gpu-1", Outdated: true, Mismatched: true},
			{Ordinal: 3, SlurmNode: "gpu-3", Outdated: true, Mismatched: true},
		},
	}
	if diff := cmp.Diff(want, EndedElastic(set, conf, "abc", nodes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := EndedElastic(set, "", "abc", nodes[2:]); got != nil {
		t.Errorf("without records it still has %+v", got)
	}
}
