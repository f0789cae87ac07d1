//go:build integration

package operator_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// A kubelet simulates the slurmd pods of a world: it binds them to a Kubernetes node, sets them ready, and registers
// their nodes with the in-memory Slurm. When a pod is deleted, its Slurm node stops responding.
type kubelet struct {
	world    *world
	nodeName string

	mu      sync.Mutex
	good    string            // the only revision whose pods become ready; empty for all
	places  int               // how many pods fit on Kubernetes nodes; 0 for any number
	placed  int               // how many pods are on Kubernetes nodes
	silent  bool              // no slurmd registers; set it before there are pods
	running map[string]string // Slurm nodes, by the UID of their pod
}

// startKubelet runs a kubelet with its own Kubernetes node until the test ends.
func (w *world) startKubelet(t *testing.T) *kubelet {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-machine", Labels: map[string]string{"world": w.namespace}},
	}
	if err := w.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	k := &kubelet{world: w, nodeName: node.Name, running: map[string]string{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	loop, end := w.loop()
	running.Go(func() {
		defer end()
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			loop.beat()
			if err := k.sync(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}, 100*time.Millisecond)
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := w.Delete(context.WithoutCancel(t.Context()), node); err != nil {
			t.Error(err)
		}
	})
	return k
}

// breakOtherRevisions makes the pods of all revisions but one fail.
func (k *kubelet) breakOtherRevisions(good string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.good = good
}

// limit lets only some pods be scheduled at a time.
func (k *kubelet) limit(places int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.places = places
}

// moveTo binds new pods without a node affinity to another Kubernetes node from now on.
func (k *kubelet) moveTo(nodeName string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nodeName = nodeName
}

func (k *kubelet) sync(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	pods := &corev1.PodList{}
	if err := k.world.List(ctx, pods,
		client.MatchingLabels{"app.kubernetes.io/name": string(naming.Slurmd)}); err != nil {
		return err
	}
	k.placed = 0
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName != "" {
			k.placed++
		}
	}
	present := map[string]bool{}
	var failures []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		err := k.advance(ctx, pod)
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failures = append(failures, err)
		}
		present[string(pod.UID)] = pod.DeletionTimestamp == nil
	}
	for uid, node := range k.running {
		if !present[uid] {
			k.world.slurm.SetFlag(node, "NOT_RESPONDING", true)
			delete(k.running, uid)
		}
	}
	return errors.Join(failures...)
}

// advance moves a pod to its next state.
func (k *kubelet) advance(ctx context.Context, pod *corev1.Pod) error {
	switch {
	case pod.DeletionTimestamp != nil:
		return k.world.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	case len(pod.Spec.SchedulingGates) > 0:
		return nil
	case pod.Spec.NodeName == "" && k.places > 0 && k.placed >= k.places:
		return nil
	case pod.Spec.NodeName == "":
		k.placed++
		return k.world.SubResource("binding").Create(ctx, pod, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{
				Kind: "Node", Name: k.nodeFor(pod),
			},
		})
	case pod.Status.Phase != corev1.PodPending:
		return nil
	case k.good != "" && k.good != pod.Labels[appsv1.ControllerRevisionHashLabelKey]:
		return k.setStatus(ctx, pod, corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"},
		})
	}
	if node := pod.Labels[slinkyv1beta1.LabelPodHostname]; !k.silent {
		k.running[string(pod.UID)] = node
		k.world.slurm.AddNodes(node)
	}
	return k.setStatus(ctx, pod, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
}

// nodeFor returns the Kubernetes node that a pod's affinity requires, or else the kubelet's own.
func (k *kubelet) nodeFor(pod *corev1.Pod) string {
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		return required.NodeSelectorTerms[0].MatchFields[0].Values[0]
	}
	return k.nodeName
}

func (k *kubelet) setStatus(ctx context.Context, pod *corev1.Pod, state corev1.ContainerState) error {
	runs := state.Running != nil
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}
	if runs {
		pod.Status.Phase, ready.Status = corev1.PodRunning, corev1.ConditionTrue
	}
	pod.Status.Conditions = append(pod.Status.Conditions, ready)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: string(naming.Slurmd), State: state, Ready: runs}}
	return k.world.Status().Update(ctx, pod)
}
