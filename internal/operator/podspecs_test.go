package operator

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/process"
)

// newWorker returns a pod of a NodeSet, decoded by itself.
func newWorker(ordinal int, revision string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "slurm", Name: fmt.Sprintf("gpu-%d", ordinal),
			Labels: map[string]string{
				"app.kubernetes.io/managed-by": "slurm-operator", appsv1.ControllerRevisionHashLabelKey: revision,
			},
			Annotations:     map[string]string{"a": "b"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "NodeSet", Name: "gpu", UID: "u"}},
		},
		Spec: corev1.PodSpec{
			Hostname: fmt.Sprintf("gpu-%d", ordinal),
			Containers: []corev1.Container{
				{Name: "slurmd", Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{"cpu": resource.MustParse("2")},
				}},
				{Name: "logfile", Args: []string{"--follow"}},
			},
			Volumes: []corev1.Volume{
				{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
						ClaimName: fmt.Sprintf("data-gpu-%d", ordinal),
					},
				}},
			},
			NodeSelector: map[string]string{"gpu": "yes"},
		},
	}
}

func TestCachedPodsOfARevisionShareTheirSpecs(t *testing.T) {
	var keep func(any) (any, error)
	for kind, by := range CacheOptions(process.Settings{}).ByObject {
		if _, ok := kind.(*corev1.Pod); ok {
			keep = by.Transform
		}
	}
	cached := func(pod *corev1.Pod) *corev1.Pod {
		t.Helper()
		want := pod.DeepCopy()
		kept, err := keep(pod)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, kept); diff != "" {
			t.Errorf("the cached pod differs (-want +got):\n%s", diff)
		}
		return kept.(*corev1.Pod)
	}
	first, second := cached(newWorker(0, "r1")), cached(newWorker(1, "r1"))
	if &first.Spec.Containers[0] != &second.Spec.Containers[0] {
		t.Error("equal containers are not shared")
	}
	if first.Spec.Volumes[0].EmptyDir != second.Spec.Volumes[0].EmptyDir {
		t.Error("an equal volume beside another one is not shared")
	}
	edited := newWorker(2, "r1")
	edited.Spec.Containers[1].Args[0] = "--lines=1"
	if third := cached(edited); &third.Spec.Containers[0] == &first.Spec.Containers[0] {
		t.Error("a list with another container is shared")
	}
	if other := cached(newWorker(3, "r2")); &other.Spec.Containers[0] == &first.Spec.Containers[0] {
		t.Error("pods of two revisions share a list")
	}
	foreign := newWorker(4, "")
	if kept := cached(foreign); &kept.Spec.Containers[0] == &first.Spec.Containers[0] {
		t.Error("a pod without a revision is shared")
	}
}
