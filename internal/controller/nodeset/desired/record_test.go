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
		NodeSetUID: "u"}.String()
	shared := slurm.Owner{Namespace: "hpc", NodeSetName: "gpu", NodeSetUID: "u"}.String()
	brought := slurm.Owner{Namespace: "hpc", PodName: "gpu-0", Node: "m1"}.String()
	features := []string{"gpu", "k8s/nvlink", "k8s/rack7", "k8s/zone-eu1"}
	before := slurm.Owner{Namespace: "hpc", PodName: "gpu-0", Node: "m9", NodeSetName: "gpu", NodeSetUID: "u"}.String()
	tests := map[string]struct {
		record slurm.Node
		want   slurm.NodeUpdate
	}{
		"describes a new Slurm node": {
			slurm.Node{Instance: brought, Features: []string{"gpu"}},
			slurm.NodeUpdate{Comment: &shared, Features: &features},
		},
		"names the pod if slurmd did not": {
			slurm.Node{Features: []string{"gpu"}}, slurm.NodeUpdate{Comment: &comment, Features: &features},
		},
		"names the pod if slurmd has an instance ID of the user": {
			slurm.Node{Instance: "i-0123", Features: features}, slurm.NodeUpdate{Comment: &comment},
		},
		"is empty if slurmd named the pod and the comment the NodeSet": {
			slurm.Node{Instance: brought, Comment: shared, Features: features}, slurm.NodeUpdate{},
		},
		"replaces an outdated name of the pod": {
			slurm.Node{Instance: brought, Comment: before, Features: features}, slurm.NodeUpdate{Comment: &shared},
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

func TestEqualDescriptionsAreTogether(t *testing.T) {
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "gpu", UID: "u"}}
	var nodes []Node
	add := func(name string, record slurm.Node, features string) {
		record.Name = name
		nodes = append(nodes, Node{
			SlurmNode: &record,
			Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: name},
				Spec: corev1.PodSpec{NodeName: "m-" + name}},
			KubernetesNode: &corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{slinkyv1beta1.AnnotationFeatures: features},
			}},
		})
	}
	instance := func(pod string) string { return slurm.Owner{Namespace: "hpc", PodName: pod, Node: "m-" + pod}.String() }
	comment := slurm.Owner{Namespace: "hpc", NodeSetName: "gpu", NodeSetUID: "u"}.String()
	add("gpu-0", slurm.Node{Instance: instance("gpu-0")}, "")
	add("gpu-1", slurm.Node{Instance: instance("gpu-1"), Comment: comment}, "")
	add("gpu-2", slurm.Node{}, "")
	add("gpu-3", slurm.Node{Instance: instance("gpu-3")}, "fast")
	add("gpu-4", slurm.Node{Instance: instance("gpu-4")}, "")
	add("gpu-5", slurm.Node{Instance: instance("gpu-5")}, "fast")
	add("gpu-6", slurm.Node{Instance: instance("gpu-6"), Comment: comment, Features: []string{"k8s/old"}}, "")
	named := slurm.Owner{Namespace: "hpc", PodName: "gpu-2", Node: "m-gpu-2", NodeSetName: "gpu", NodeSetUID: "u"}.String()
	want := []Description{
		{slurm.NodeUpdate{Comment: &comment}, []string{"gpu-0", "gpu-4"}},
		{slurm.NodeUpdate{Comment: &named}, []string{"gpu-2"}},
		{slurm.NodeUpdate{Comment: &comment, Features: &[]string{"k8s/fast"}}, []string{"gpu-3", "gpu-5"}},
		{slurm.NodeUpdate{Features: &[]string{}}, []string{"gpu-6"}},
	}
	if diff := cmp.Diff(want, Descriptions(set, nodes)); diff != "" {
		t.Error(diff)
	}
}
