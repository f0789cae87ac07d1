//go:build integration

package operator_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// at passes a node that takes jobs and has a place in Slurm's topology.
func at(place string) func(*slurm.Node) bool {
	return func(node *slurm.Node) bool { return node.Topology == place && !node.Draining() }
}

func TestTopologyFollowsTheMachine(t *testing.T) {
	set := newNodeSet(2)
	set.Spec.NodeLabels = &slinkyv1beta1.NodeLabelRules{Topology: []slinkyv1beta1.TopologyRule{{Name: "topo-switch", Labels: []string{"switch"}}}}
	w := newNodeWorld(t, set)
	before := w.uids(t)
	machine := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.kubelet.machine}}
	w.patch(t, machine, `{"metadata":{"labels":{"switch":"s1"}}}`)
	w.node(t, "gpu-0", "at s1, by the label", at("topo-switch:s1"))
	w.patch(t, machine, `{"metadata":{"annotations":{%q:"topo-switch:s2"}}}`, slinkyv1beta1.AnnotationTopology)
	w.node(t, "gpu-0", "at s2, by the annotation", at("topo-switch:s2"))
	w.node(t, "gpu-1", "at s2, by the annotation", at("topo-switch:s2"))
	w.is(t, slinkyv1beta1.ConditionTopologyApplied, metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)

	w.patch(t, machine, `{"metadata":{"annotations":{%q:"topo-switch:s9"}}}`, slinkyv1beta1.AnnotationTopology)
	w.is(t, slinkyv1beta1.ConditionTopologyApplied, metav1.ConditionFalse, slinkyv1beta1.ReasonTopologyRefused)
	w.node(t, "gpu-0", "where it was", at("topo-switch:s2"))
	w.ready(t)
	w.rests(t)

	w.patch(t, machine, `{"metadata":{"annotations":{%q:""}}}`, slinkyv1beta1.AnnotationTopology)
	w.node(t, "gpu-0", "nowhere", at(""))
	w.is(t, slinkyv1beta1.ConditionTopologyApplied, metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)
	if after := w.uids(t); before["gpu-0"] != after["gpu-0"] || before["gpu-1"] != after["gpu-1"] {
		t.Errorf("the pods were %v and are %v", before, after)
	}
}
