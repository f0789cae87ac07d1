package naming_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

func TestOrdinalsOfSlurmNodes(t *testing.T) {
	set := func(change func(*slinkyv1beta1.NodeSetSpec)) *slinkyv1beta1.NodeSet {
		set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
		change(&set.Spec)
		return set
	}
	plain := set(func(*slinkyv1beta1.NodeSetSpec) {})
	padded := set(func(spec *slinkyv1beta1.NodeSetSpec) { spec.OrdinalPadding = 3 })
	numbered := set(func(spec *slinkyv1beta1.NodeSetSpec) { spec.Template.Spec.Raw = []byte(`{"hostname":"rack10"}`) })
	for name, test := range map[string]struct {
		set  *slinkyv1beta1.NodeSet
		node string
		want int // -1 if it is not one of the NodeSet
	}{
		"its own":                       {plain, "gpu-12", 12},
		"another prefix":                {plain, "cpu-2", -1},
		"a longer name":                 {plain, "gpu-big-2", -1},
		"a sign":                        {plain, "gpu-+2", -1},
		"a padded ordinal":              {padded, "gpu-002", 2},
		"an ordinal that is not padded": {padded, "gpu-2", -1},
		"a prefix that ends with 0":     {numbered, "rack107", 7},
	} {
		ordinal, own := naming.WorkerOrdinals(test.set)(test.node)
		if own != (test.want >= 0) || own && ordinal != test.want {
			t.Errorf("%s: %d, %t", name, ordinal, own)
		}
	}
}
