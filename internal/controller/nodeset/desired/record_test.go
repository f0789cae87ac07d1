package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

func TestRecord(t *testing.T) {
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu", UID: "u"}}
	set.Spec.NodeLabels = &slinkyv1beta1.NodeLabelRules{
		Features: []slinkyv1beta1.FeatureRule{{Label: "zone", Feature: "zone"}, {Label: "missing", Feature: "x"}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "gpu-0"}, Spec: corev1.PodSpec{NodeName: "m1"},
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "m1", Labels: map[string]string{"zone": "eu1"}, Annotations: map[string]string{
			slinkyv1beta1.AnnotationFeatures: "rack7, k8s/nvlink,bad one",
		},
	}}
	comment := slurm.Owner{Namespace: "hpc", PodName: "gpu-0", Node: "m1", NodeSetName: "gpu",
		NodeSetUID: "u"}.Comment()
	features := []string{"gpu", "k8s/nvlink", "k8s/rack7", "k8s/zone-eu1"}
	before := slurm.Owner{Namespace: "hpc", PodName: "gpu-0", Node: "m9", NodeSetName: "gpu", NodeSetUID: "u"}.Comment()
	tests := map[string]struct {
		record slurm.Node
		want   slurm.NodeUpdate
	}{
		"describes a new Slurm node": {
			slurm.Node{Features: []string{"gpu"}}, slurm.NodeUpdate{Comment: &comment, Features: &features},
		},
		"is empty if everything is current": {
			slurm.Node{Comment: comment, Features: features}, slurm.NodeUpdate{},
		},
		"follows a pod to another Kubernetes node": {
			slurm.Node{Comment: before, Features: features}, slurm.NodeUpdate{Comment: &comment},
		},
		"keeps a user's comment": {
			slurm.Node{Comment: "do not touch", Features: features}, slurm.NodeUpdate{},
		},
		"removes outdated features": {
			slurm.Node{Comment: comment, Features: append([]string{"gpu", "k8s/old"}, features[1:]...)},
			slurm.NodeUpdate{Features: &features},
		},
		"keeps foreign features": {
			slurm.Node{Comment: comment, Features: features[:1]}, slurm.NodeUpdate{Features: &features},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want,
				Record(set, Node{Pod: pod, SlurmNode: &test.record, KubernetesNode: node})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
