package desired

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

func TestTopology(t *testing.T) {
	rules := []slinkyv1beta1.TopologyRule{
		{Name: "topo-switch", Labels: []string{"zone", "rack"}}, {Name: "topo-block", Labels: []string{"clique"}},
	}
	annotation := func(topology string) map[string]string {
		return map[string]string{slinkyv1beta1.AnnotationTopology: topology}
	}
	tests := map[string]struct {
		rules               []slinkyv1beta1.TopologyRule
		annotations, labels map[string]string
		want                string
		managed             bool
	}{
		"is not managed without annotation and rules": {labels: map[string]string{"zone": "eu1"}},
		"is the annotation": {
			annotations: annotation("topo-switch:s2,topo-block:b2"), want: "topo-switch:s2,topo-block:b2",
			managed: true,
		},
		"ignores spaces": {
			annotations: annotation(" topo-switch:s2 , topo-block:b2,"), want: "topo-switch:s2,topo-block:b2",
			managed: true,
		},
		"is empty if the annotation is": {annotations: annotation(""), managed: true},
		"consists of labels, from the root down": {
			rules: rules, labels: map[string]string{"zone": "eu1", "rack": "r7", "clique": "c3"},
			want: "topo-switch:eu1:r7,topo-block:c3", managed: true,
		},
		"omits a topology with missing labels": {
			rules: rules, labels: map[string]string{"zone": "eu1", "clique": "c3"}, want: "topo-block:c3",
			managed: true,
		},
		"is empty if all labels are missing": {rules: rules, managed: true},
		"prefers the annotation to labels": {
			rules: rules, annotations: annotation("topo-block:b2"), labels: map[string]string{"clique": "c3"},
			want: "topo-block:b2", managed: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := &slinkyv1beta1.NodeSet{}
			set.Spec.NodeLabels = &slinkyv1beta1.NodeLabelRules{Topology: test.rules}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations, Labels: test.labels}}
			if got, managed := topology(set, node); got != test.want || managed != test.managed {
				t.Errorf("the topology is %q, %t, want %q, %t", got, managed, test.want, test.managed)
			}
		})
	}
}
