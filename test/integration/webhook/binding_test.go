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
	placed, plain := world.node(t, map[string]string{slinkyv1beta1.AnnotationTopology: topology, "other": "x"}), world.node(t, nil)
	slurmd := naming.Labels(naming.Slurmd, "gpu")

	tests := map[string]struct {
		labels map[string]string
		node   string
		sets   bool // whether there is a NodeSet in the namespace
		want   string
	}{
		"not before there is a NodeSet":         {slurmd, placed, false, ""},
		"a slurmd pod":                          {slurmd, placed, true, topology},
		"not when the node has none":            {slurmd, plain, true, ""},
		"not a pod of somebody else":            {nil, placed, true, ""},
		"not a pod of another daemon":           {naming.Labels(naming.Slurmctld, "gpu"), placed, true, ""},
		"not when the node is not known":        {slurmd, "missing", true, ""},
		"not a pod that only looks like slurmd": {naming.Selector(naming.Slurmd, "gpu"), placed, true, ""},
	}
	set := &slinkyv1beta1.NodeSet{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu", Namespace: world.namespace},
		Spec:       slinkyv1beta1.NodeSetSpec{ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}},
	}
	for _, sets := range []bool{false, true} {
		if sets {
			world.create(t, set)
			world.knowsNodeSets(t, placed)
		}
		for name, test := range tests {
			if test.sets != sets {
				continue
			}
			t.Run(name, func(t *testing.T) {
				pod := world.bound(t, test.labels, test.node)
				if got := pod.Annotations[slinkyv1beta1.AnnotationTopology]; got != test.want || pod.Annotations["other"] != "" {
					t.Errorf("the pod has the annotations %v, want the topology %q", pod.Annotations, test.want)
				}
			})
		}
	}
}

func (w *world) knowsNodeSets(t *testing.T, node string) {
	t.Helper()
	eventually(t, "the webhook has seen the NodeSet", func(context.Context) error {
		pod := w.bound(t, naming.Labels(naming.Slurmd, "gpu"), node)
		if pod.Annotations[slinkyv1beta1.AnnotationTopology] == "" {
			return errors.New("it has not")
		}
		return nil
	})
}

// node makes a Kubernetes node.
func (w *world) node(t *testing.T, annotations map[string]string) string {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-", Annotations: annotations}}
	w.create(t, node)
	return node.Name
}

// bound makes a pod, binds it to a node and returns it as it then is.
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

// pod makes a pod that is on no node yet.
func (w *world) pod(t *testing.T, labels map[string]string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "gpu-", Namespace: w.namespace, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "slurmd", Image: "example.com/slurmd"}}},
	}
	w.create(t, pod)
	return pod
}

// bind binds a pod to a node as the scheduler does.
func (w *world) bind(ctx context.Context, pod *corev1.Pod, node string) error {
	return w.SubResource("binding").Create(ctx, pod.DeepCopy(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	})
}

// What is reviewed at a binding is a Binding, and it has none of the pod's labels: a selector for them matches nothing, so that
// the webhook would never be asked. That is why it looks at the pod itself.
func TestSelectorsDoNotSeeThePodOfABinding(t *testing.T) {
	world := newWorld(t, options{required: true}) // and nobody answers
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
	eventually(t, "bindings do not concern the webhook", bind)
}
