package desired

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
)

// elasticSet returns an elastic NodeSet.
func elasticSet() *slinkyv1beta1.NodeSet {
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	set.Spec.ExtraConf = "CPUs=4 RealMemory=1000"
	set.Spec.Elastic = &slinkyv1beta1.NodeSetElastic{MaxReplicas: 3, MinReplicas: 1}
	return set
}

func TestElastic(t *testing.T) {
	const conf = "SlurmctldParameters=enable_configless,config_hash=abc\n" +
		"NodeName=gpu-[0,3] State=CLOUD Features=gpu CPUs=4 RealMemory=1000\n" +
		"NodeName=gpu-1 State=CLOUD Features=gpu CPUs=2 RealMemory=1000\n" +
		"NodeName=other-0 State=CLOUD CPUs=2\n"
	got := Elastic(elasticSet(), conf, "", "abc")
	want := &plan.Elastic{
		Min: 1, Max: 3, Idle: 10 * time.Minute, Start: 10 * time.Minute, Backoff: 10 * time.Minute,
		Slots: []plan.Slot{
			{Ordinal: 0, SlurmNode: "gpu-0"}, {Ordinal: 1, SlurmNode: "gpu-1", Outdated: true},
			{Ordinal: 2, SlurmNode: "gpu-2"}, {Ordinal: 3, SlurmNode: "gpu-3", Outdated: true},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, hash := range []string{"", "older"} {
		for _, slot := range Elastic(elasticSet(), conf, "", hash).Slots {
			if !slot.Pending {
				t.Errorf("%s is settled although slurmctld runs with configuration %q", slot.SlurmNode, hash)
			}
		}
	}
}

func TestSlurmNodesOfElasticNodeSet(t *testing.T) {
	padded := elasticSet()
	padded.Spec.OrdinalPadding = 3
	numbered := elasticSet()
	numbered.Spec.Template.Spec.Raw = []byte(`{"hostname":"rack10"}`)
	for name, test := range map[string]struct {
		set  *slinkyv1beta1.NodeSet
		node string
		want bool
	}{
		"its own":                       {elasticSet(), "gpu-2", true},
		"its own, beyond the maximum":   {elasticSet(), "gpu-10", true},
		"another prefix":                {elasticSet(), "cpu-2", false},
		"a longer name":                 {elasticSet(), "gpu-big-2", false},
		"a padded ordinal":              {padded, "gpu-002", true},
		"an ordinal that is not padded": {padded, "gpu-2", false},
		"a prefix that ends with 0":     {numbered, "rack107", true},
		"one of a fixed NodeSet":        {&slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}, "gpu-2", false},
	} {
		if got := HasSlurmNode(test.set, test.node); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
