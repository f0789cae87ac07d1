//go:build integration

package webhook_test

import (
	"context"
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

const topology = "topo-switch:s2,topo-block:b2"

func TestPodsGetTheTopologyOfTheirNode(t *testing.T) {
	world := newWorld(t, options{required: true})
	world.serve(t)
	placed, plain := world.node(t,
		map[string]string{slinkyv1beta1.AnnotationTopology: topology, "other": "x"}), world.node(t, nil)
	slurmd := naming.Labels(naming.Slurmd, "gpu")

	tests := map[string]struct {
		labels map[string]string
		node   string
		sets   bool // whether the namespace has a NodeSet
		want   string
	}{
		"not before there is a NodeSet":    {slurmd, placed, false, ""},
		"a slurmd pod":                     {slurmd, placed, true, topology},
		"not when the node has none":       {slurmd, plain, true, ""},
		"not a foreign pod":                {nil, placed, true, ""},
		"not a pod of another daemon":      {naming.Labels(naming.Slurmctld, "gpu"), placed, true, ""},
		"not when the node does not exist": {slurmd, "missing", true, ""},
		"not a pod without all labels":     {naming.Selector(naming.Slurmd, "gpu"), placed, true, ""},
	}
	set := &slinkyv1beta1.NodeSet{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu", Namespace: world.namespace},
		Spec:       slinkyv1beta1.NodeSetSpec{ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}},
	}
	for _, sets := range []bool{false, true} {
		if sets {
			world.create(t, set)
			world.waitForNodeSet(t, placed)
		}
		for name, test := range tests {
			if test.sets != sets {
				continue
			}
			t.Run(name, func(t *testing.T) {
				pod := world.bound(t, test.labels, test.node)
				if got := pod.Annotations[slinkyv1beta1.AnnotationTopology]; got != test.want ||
					pod.Annotations["other"] != "" {
					t.Errorf("the pod has the annotations %v, want the topology %q", pod.Annotations, test.want)
				}
			})
		}
	}
}

func (w *world) waitForNodeSet(t *testing.T, node string) {
	t.Helper()
	eventually(t, "the webhook has seen the NodeSet", func(context.Context) error {
		pod := w.bound(t, naming.Labels(naming.Slurmd, "gpu"), node)
		if pod.Annotations[slinkyv1beta1.AnnotationTopology] == "" {
			return errors.New("the pod has no topology")
		}
		return nil
	})
}

// node creates a Kubernetes node.
func (w *world) node(t *testing.T, annotations map[string]string) string {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-", Annotations: annotations}}
	w.create(t, node)
	return node.Name
}

// bound creates a pod, binds it to a Kubernetes node and returns the result.
func (w *world) bound(t *testing.T, labels map[string]string, node string) *corev1.Pod {
	t.Helper()
	pod := w.pod(t, labels)
	if err := w.bind(t.Context(), pod, node); err != nil {
		t.Fatalf("binding pod %s: %v", pod.Name, err)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	if pod.Spec.NodeName != node {
		t.Errorf("pod %s is on node %q, want %q", pod.Name, pod.Spec.NodeName, node)
	}
	return pod
}

// pod creates a pod that is not scheduled yet.
func (w *world) pod(t *testing.T, labels map[string]string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "gpu-", Namespace: w.namespace, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "slurmd", Image: "example.com/slurmd"}}},
	}
	w.create(t, pod)
	return pod
}

// bind binds a pod to a Kubernetes node like the scheduler.
func (w *world) bind(ctx context.Context, pod *corev1.Pod, node string) error {
	return w.SubResource("binding").Create(ctx, pod.DeepCopy(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	})
}

// The object of a binding request is a Binding, which has none of the pod's labels: with an object selector for them
// the webhook would never be called. That is why it reads the pod itself.
func TestObjectSelectorsDoNotMatchPodOfBinding(t *testing.T) {
	world := newWorld(t, options{required: true}) // no webhook is running
	node, slurmd := world.node(t, nil), naming.Labels(naming.Slurmd, "gpu")
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := world.Get(t.Context(), client.ObjectKey{Name: world.namespace}, configuration); err != nil {
		t.Fatal(err)
	}
	bind := func(ctx context.Context) error { return world.bind(ctx, world.pod(t, slurmd), node) }
	eventually(t, "bindings fail", func(ctx context.Context) error {
		if bind(ctx) == nil {
			return errors.New("a pod was bound although the webhook did not answer")
		}
		return nil
	})
	configuration.Webhooks[0].ObjectSelector = &metav1.LabelSelector{MatchLabels: slurmd}
	if err := world.Update(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	eventually(t, "bindings do not call the webhook", bind)
}
