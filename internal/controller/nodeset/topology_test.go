package nodeset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

func TestPlace(t *testing.T) {
	rules := []slinkyv1beta1.TopologyRule{{Name: "topo-switch", Labels: []string{"zone", "rack"}}, {Name: "topo-block", Labels: []string{"clique"}}}
	annotation := func(place string) map[string]string {
		return map[string]string{slinkyv1beta1.AnnotationTopology: place}
	}
	tests := map[string]struct {
		rules               []slinkyv1beta1.TopologyRule
		annotations, labels map[string]string
		want                string
		ours                bool
	}{
		"is nobody's when nothing names it":       {labels: map[string]string{"zone": "eu1"}},
		"is what the annotation says":             {annotations: annotation("topo-switch:s2,topo-block:b2"), want: "topo-switch:s2,topo-block:b2", ours: true},
		"does not mind blanks":                    {annotations: annotation(" topo-switch:s2 , topo-block:b2,"), want: "topo-switch:s2,topo-block:b2", ours: true},
		"is none when the annotation is empty":    {annotations: annotation(""), ours: true},
		"is spelt by labels, from the root down":  {rules: rules, labels: map[string]string{"zone": "eu1", "rack": "r7", "clique": "c3"}, want: "topo-switch:eu1:r7,topo-block:c3", ours: true},
		"leaves out a topology that lacks labels": {rules: rules, labels: map[string]string{"zone": "eu1", "clique": "c3"}, want: "topo-block:c3", ours: true},
		"is none when all labels are missing":     {rules: rules, ours: true},
		"is the annotation's before the labels'":  {rules: rules, annotations: annotation("topo-block:b2"), labels: map[string]string{"clique": "c3"}, want: "topo-block:b2", ours: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := &slinkyv1beta1.NodeSet{}
			set.Spec.NodeLabels = &slinkyv1beta1.NodeLabelRules{Topology: test.rules}
			machine := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations, Labels: test.labels}}
			if got, ours := place(set, machine); got != test.want || ours != test.ours {
				t.Errorf("it is %q, %t, want %q, %t", got, ours, test.want, test.ours)
			}
		})
	}
}
