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

// A kubelet runs the slurmd pods of a world, in name only: it binds them to a Kubernetes node, makes them ready, and registers
// their nodes with the Slurm in memory; when they are deleted, their slurmds no longer answer.
type kubelet struct {
	world   *world
	machine string

	mu      sync.Mutex
	good    string            // the only revision whose pods come up; empty for all
	running map[string]string // Slurm nodes, by the UID of their pod
}

// startKubelet runs a kubelet on a Kubernetes node of the world's own until the test ends.
func (w *world) startKubelet(t *testing.T) *kubelet {
	t.Helper()
	machine := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-machine", Labels: map[string]string{"world": w.namespace}}}
	if err := w.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	k := &kubelet{world: w, machine: machine.Name, running: map[string]string{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if err := k.sync(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}, 20*time.Millisecond)
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := w.Delete(context.WithoutCancel(t.Context()), machine); err != nil {
			t.Error(err)
		}
	})
	return k
}

// breakAllBut keeps pods from coming up that are not of a revision.
func (k *kubelet) breakAllBut(good string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.good = good
}

// moveTo binds pods that may be anywhere to another Kubernetes node from now on.
func (k *kubelet) moveTo(machine string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.machine = machine
}

func (k *kubelet) sync(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	pods := &corev1.PodList{}
	if err := k.world.List(ctx, pods, client.MatchingLabels{"app.kubernetes.io/name": string(naming.Slurmd)}); err != nil {
		return err
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

// advance takes a pod one step further.
func (k *kubelet) advance(ctx context.Context, pod *corev1.Pod) error {
	switch {
	case pod.DeletionTimestamp != nil:
		return k.world.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	case len(pod.Spec.SchedulingGates) > 0:
		return nil
	case pod.Spec.NodeName == "":
		return k.world.SubResource("binding").Create(ctx, pod, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: k.placeFor(pod)},
		})
	case pod.Status.Phase != corev1.PodPending:
		return nil
	case k.good != "" && k.good != pod.Labels[appsv1.ControllerRevisionHashLabelKey]:
		return k.setStatus(ctx, pod, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}})
	}
	node := pod.Labels[slinkyv1beta1.LabelPodHostname]
	k.running[string(pod.UID)] = node
	k.world.slurm.AddNodes(node)
	return k.setStatus(ctx, pod, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
}

// placeFor is where a pod has to be, or else the kubelet's own Kubernetes node.
func (k *kubelet) placeFor(pod *corev1.Pod) string {
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
	}
	return k.machine
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
