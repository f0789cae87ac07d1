package child_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slurm-operator/slurm-operator/internal/child"
)

// The decision to replace a pod may be based on a stale cache, in which its daemon has not been restarted yet.
func TestPodThatHasChangedMeanwhileIsNotReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*testing.T, client.Client, *corev1.Pod)
		want      bool
	}{
		"unchanged": {func(*testing.T, client.Client, *corev1.Pod) {}, true},
		"restarted": {func(t *testing.T, kubernetes client.Client, pod *corev1.Pod) {
			t.Helper()
			pod.Status.PodIP = "10.0.0.1"
			if err := kubernetes.Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}, false},
		"deleted": {func(t *testing.T, kubernetes client.Client, pod *corev1.Pod) {
			t.Helper()
			if err := kubernetes.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			kubernetes := fake.NewClientBuilder().WithObjects(
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "slurm-accounting-0", UID: "a"}}).Build()
			pod := &corev1.Pod{}
			key := client.ObjectKey{Namespace: "hpc", Name: "slurm-accounting-0"}
			if err := kubernetes.Get(t.Context(), key, pod); err != nil {
				t.Fatal(err)
			}
			test.meanwhile(t, kubernetes, pod.DeepCopy())
			replaced, err := child.NewApplier(kubernetes).Replace(t.Context(), pod, 0)
			if err != nil || replaced != test.want {
				t.Errorf("the pod was replaced: %v, %v", replaced, err)
			}
		})
	}
}

func TestStaleObjectIsNotChanged(t *testing.T) {
	kubernetes := fake.NewClientBuilder().WithObjects(
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "a"}}).Build()
	stale, live := &corev1.Pod{}, &corev1.Pod{}
	key := client.ObjectKey{Namespace: "hpc", Name: "a"}
	if err := kubernetes.Get(t.Context(), key, stale); err != nil {
		t.Fatal(err)
	}
	applier := child.NewApplier(kubernetes)
	for range 2 {
		read := stale.DeepCopy()
		if err := applier.Change(t.Context(), read, func() {
			read.Annotations = map[string]string{"changed": read.ResourceVersion + live.ResourceVersion}
		}); err != nil {
			t.Error(err)
		}
		if err := kubernetes.Get(t.Context(), key, live); err != nil {
			t.Fatal(err)
		}
		if live.Annotations["changed"] != stale.ResourceVersion {
			t.Errorf("it has %v", live.Annotations)
		}
	}
}
