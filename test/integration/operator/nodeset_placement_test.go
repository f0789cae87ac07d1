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

// at matches a Slurm node that accepts jobs and has this place in Slurm's topology.
func at(place string) func(*slurm.Node) bool {
	return func(node *slurm.Node) bool { return node.Topology == place && !node.Draining() }
}

func TestTopologyFollowsKubernetesNode(t *testing.T) {
	t.Parallel()
	set := newNodeSet(2)
	set.Spec.NodeLabels = &slinkyv1beta1.NodeLabelRules{
		Topology: []slinkyv1beta1.TopologyRule{{Name: "topo-switch", Labels: []string{"switch"}}},
	}
	w := newNodeWorld(t, set)
	before := w.uids(t)
	kubernetesNode := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.kubelet.nodeName}}
	w.patch(t, kubernetesNode, `{"metadata":{"labels":{"switch":"s1"}}}`)
	w.node(t, "gpu-0", "at s1, by the label", at("topo-switch:s1"))
	w.patch(t, kubernetesNode, `{"metadata":{"annotations":{%q:"topo-switch:s2"}}}`, slinkyv1beta1.AnnotationTopology)
	w.node(t, "gpu-0", "at s2, by the annotation", at("topo-switch:s2"))
	w.node(t, "gpu-1", "at s2, by the annotation", at("topo-switch:s2"))
	w.is(t, slinkyv1beta1.ConditionTopologyApplied, metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)

	w.patch(t, kubernetesNode, `{"metadata":{"annotations":{%q:"topo-switch:s9"}}}`, slinkyv1beta1.AnnotationTopology)
	w.is(t, slinkyv1beta1.ConditionTopologyApplied, metav1.ConditionFalse, slinkyv1beta1.ReasonTopologyRefused)
	w.node(t, "gpu-0", "still at s2", at("topo-switch:s2"))
	w.ready(t)
	w.waitUntilIdle(t)

	w.patch(t, kubernetesNode, `{"metadata":{"annotations":{%q:""}}}`, slinkyv1beta1.AnnotationTopology)
	w.node(t, "gpu-0", "without a topology", at(""))
	w.is(t, slinkyv1beta1.ConditionTopologyApplied, metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)
	if after := w.uids(t); before["gpu-0"] != after["gpu-0"] || before["gpu-1"] != after["gpu-1"] {
		t.Errorf("the pods were %v and are %v", before, after)
	}
}

// An ordinal returns to the Kubernetes node that it first ran on, until an administrator removes the pin.
func TestPinnedPodReturnsToItsKubernetesNode(t *testing.T) {
	t.Parallel()
	set := newNodeSet(2)
	set.Spec.PinToNode = true
	w := newNodeWorld(t, set)
	first, second := w.kubelet.nodeName, w.namespace+"-second"
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
	kubernetesNode := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: second}}
	w.create(t, kubernetesNode)
	defer func() {
		if err := w.Delete(context.WithoutCancel(t.Context()), kubernetesNode); err != nil {
			t.Error(err)
		}
	}()
	w.kubelet.moveTo(second)
	w.deleteAndWait(t, "gpu-1", first)
	w.patch(t, pins, `{"data":{"1":null}}`)
	w.eventually(t, "gpu-pins-0", pins, func() error {
		if pins.Data["1"] != first {
			return fmt.Errorf("a running pod is not pinned again: %v", pins.Data)
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
	w.waitUntilIdle(t)
}

// deleteAndWait deletes a pod, as a user might, and waits until its replacement is on a Kubernetes node.
func (w *nodeWorld) deleteAndWait(t *testing.T, name, nodeName string) {
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
		if pod.UID == before || pod.Spec.NodeName != nodeName {
			return fmt.Errorf("it is %s on %q", pod.UID, pod.Spec.NodeName)
		}
		return nil
	})
}
