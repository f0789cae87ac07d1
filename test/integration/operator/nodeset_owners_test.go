//go:build integration

package operator_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// orphan deletes the NodeSet like kubectl delete --cascade=orphan, and does the work of Kubernetes' garbage collector.
func (w *nodeWorld) orphan(t *testing.T) {
	t.Helper()
	if err := w.Delete(t.Context(), w.set, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, w.set.Name, w.set, func() error {
		if len(w.set.Finalizers) != 1 {
			return fmt.Errorf("its finalizers are %v", w.set.Finalizers)
		}
		return nil
	})
	for _, owned := range w.owned(t) {
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"ownerReferences":[{"$patch":"delete","uid":%q}]}}`,
			owned.GetUID(), w.set.UID)
		if err := w.Patch(t.Context(), owned, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	w.patch(t, w.set, `{"metadata":{"finalizers":null}}`)
	w.gone(t, w.set.Name, w.set)
}

// owned returns the objects with the set's labels that it owns.
func (w *nodeWorld) owned(t *testing.T) []client.Object {
	t.Helper()
	pods, revisions := &corev1.PodList{}, &appsv1.ControllerRevisionList{}
	budgets, configMaps := &policyv1.PodDisruptionBudgetList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{pods, revisions, budgets, configMaps} {
		if err := w.List(t.Context(), list,
			client.MatchingLabels(naming.Selector(naming.Slurmd, w.set.Name))); err != nil {
			t.Fatal(err)
		}
	}
	var owned []client.Object
	add := func(object client.Object) {
		if metav1.IsControlledBy(object, w.set) {
			owned = append(owned, object)
		}
	}
	for i := range pods.Items {
		add(&pods.Items[i])
	}
	for i := range revisions.Items {
		add(&revisions.Items[i])
	}
	for i := range budgets.Items {
		add(&budgets.Items[i])
	}
	for i := range configMaps.Items {
		add(&configMaps.Items[i])
	}
	return owned
}

func TestOrphansAreAdopted(t *testing.T) {
	t.Parallel()
	set := newNodeSet(3)
	set.Spec.PinToNode = true
	w := newNodeWorld(t, set)
	job := w.runJob(t, "gpu-1", time.Hour)
	before, count := w.uids(t), len(w.owned(t))
	w.orphan(t)
	w.waitUntilIdle(t)

	w.set = newNodeSet(3)
	w.set.Spec.PinToNode = true
	w.create(t, w.set)
	w.ready(t)
	if after := w.uids(t); !maps.Equal(before, after) {
		t.Errorf("the pods were %v and are %v", before, after)
	}
	if owned := w.owned(t); len(owned) != count {
		t.Errorf("of %d objects %d were adopted", count, len(owned))
	}
	w.node(t, "gpu-1", "described by the new set, and busy", func(node *slurm.Node) bool {
		owner, err := slurm.ParseOwner(node.Comment)
		return err == nil && owner.NodeSetUID == string(w.set.UID) && node.Busy() && !node.Draining()
	})
	w.waitUntilIdle(t)
	w.cancelJob(t, job)
}

func TestForeignPodsAreNotAdopted(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(1))
	template := &corev1.Pod{}
	w.get(t, "gpu-0", template)
	for name, edit := range map[string]func(*corev1.Pod){
		"stranger": func(*corev1.Pod) {}, // not a name of the set's pods
		"gpu-7":    func(pod *corev1.Pod) { pod.Labels[naming.LabelController] = "another" },
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(template.Labels)},
			Spec:       *template.Spec.DeepCopy(),
		}
		pod.Labels[slinkyv1beta1.LabelPodIndex] = "7"
		edit(pod)
		w.create(t, pod)
	}
	w.create(t, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "old", Labels: naming.Labels(naming.Slurmd, w.set.Name)}, Revision: 1,
		Data: runtime.RawExtension{Raw: []byte("{}")},
	})
	w.patch(t, w.set, `{"spec":{"replicas":2}}`)
	w.eventually(t, w.set.Name, w.set, func() error {
		if w.set.Status.ReadyReplicas != 2 {
			return fmt.Errorf("%d pods are ready", w.set.Status.ReadyReplicas)
		}
		return nil
	})
	w.waitUntilIdle(t)
	if owned := w.owned(t); len(owned) != 4 { // two pods, their revision and the budget
		t.Errorf("the set owns %d objects", len(owned))
	}
}

func TestPodWithoutItsLabelsIsReleased(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(2))
	w.runJob(t, "gpu-1", time.Hour)
	pod := &corev1.Pod{}
	w.get(t, "gpu-1", pod)
	uid := pod.UID
	w.patch(t, pod, `{"metadata":{"labels":{"app.kubernetes.io/instance":"kept"}}}`)
	w.eventually(t, "gpu-1", pod, func() error {
		if len(pod.OwnerReferences) != 0 || pod.UID != uid || pod.DeletionTimestamp != nil {
			return fmt.Errorf("it is %s, owned by %v", pod.UID, pod.OwnerReferences)
		}
		return nil
	})
	w.patch(t, pod, `{"metadata":{"labels":{"app.kubernetes.io/instance":"gpu"}}}`)
	w.eventually(t, "gpu-1", pod, func() error {
		if !metav1.IsControlledBy(pod, w.set) {
			return fmt.Errorf("it is owned by %v", pod.OwnerReferences)
		}
		return nil
	})
	w.ready(t)
}

// A foreign object has the name of the next revision.
func TestRevisionHashCollision(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(1))
	first := w.set.Status.NodeSetHash
	w.patch(t, w.set, `{"spec":{"extraConf":"Weight=7"}}`)
	w.until(t, "another revision", func(context.Context) error {
		if w.get(t, "gpu", w.set); w.set.Status.NodeSetHash == first {
			return fmt.Errorf("it is %s", first)
		}
		return nil
	})
	w.ready(t)
	second := w.set.Status.NodeSetHash
	w.patch(t, w.set, `{"spec":{"extraConf":null}}`)
	w.gone(t, "gpu-"+second, &appsv1.ControllerRevision{})
	w.create(t, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-" + second}, Data: runtime.RawExtension{Raw: []byte(`{"x":1}`)},
		Revision: 1,
	})
	w.patch(t, w.set, `{"spec":{"extraConf":"Weight=7"}}`)
	w.eventually(t, "gpu", w.set, func() error {
		if count := w.set.Status.CollisionCount; count == nil || *count != 1 || w.set.Status.NodeSetHash == second {
			return fmt.Errorf("the revision is %s, collisions %v", w.set.Status.NodeSetHash, count)
		}
		return nil
	})
	w.ready(t)
}
