//go:build integration

package operator_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// An ordinal returns to the machine that it first ran on, until somebody removes the pin.
func TestPinsBringPodsBack(t *testing.T) {
	set := newNodeSet(2)
	set.Spec.PinToNode = true
	w := newNodeWorld(t, set)
	first, second := w.kubelet.machine, w.namespace+"-second"
	pins := &corev1.ConfigMap{}
	w.eventually(t, "gpu-pins-0", pins, func() error {
		if want := map[string]string{"0": first, "1": first}; !maps.Equal(pins.Data, want) {
			return fmt.Errorf("the pins are %v", pins.Data)
		}
		return nil
	})
	w.eventually(t, "gpu", w.set, func() error {
		if shown := w.set.Status.OrdinalToNode; len(shown) != 2 || shown["1"] != first {
			return fmt.Errorf("the status shows %v", shown)
		}
		return nil
	})
	machine := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: second}}
	w.create(t, machine)
	defer func() {
		if err := w.Delete(context.WithoutCancel(t.Context()), machine); err != nil {
			t.Error(err)
		}
	}()
	w.kubelet.moveTo(second)
	w.replaced(t, "gpu-1", first)
	w.patch(t, pins, `{"data":{"1":null}}`)
	w.eventually(t, "gpu-pins-0", pins, func() error {
		if pins.Data["1"] != first {
			return fmt.Errorf("a pod that runs is not pinned again: %v", pins.Data)
		}
		return nil
	})
	w.scale(t, 1)
	w.hasPods(t, "gpu-0")
	w.patch(t, pins, `{"data":{"1":null}}`)
	w.scale(t, 2)
	w.eventually(t, "gpu-pins-0", pins, func() error {
		if want := map[string]string{"0": first, "1": second}; !maps.Equal(pins.Data, want) {
			return fmt.Errorf("the pins are %v", pins.Data)
		}
		return nil
	})
	w.ready(t)
	w.rests(t)
}

// replaced deletes a pod, as somebody else would, and waits until the next one runs on a machine.
func (w *nodeWorld) replaced(t *testing.T, name, machine string) {
	t.Helper()
	pod := &corev1.Pod{}
	w.get(t, name, pod)
	before := pod.UID
	if err := w.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.until(t, name+" to be back", func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.UID == before || pod.Spec.NodeName != machine {
			return fmt.Errorf("it is %s on %q", pod.UID, pod.Spec.NodeName)
		}
		return nil
	})
}
