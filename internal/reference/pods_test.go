package reference

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pod returns a pod that a StatefulSet controls; none if uid is empty.
func pod(name string, uid types.UID) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if uid != "" {
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "slurm-controller", UID: uid, Controller: new(true)},
		}
	}
	return pod
}

// Any user who may create pods can give them any labels.
func TestPodsWithOnlyTheLabelsOfAStatefulSetAreIgnored(t *testing.T) {
	foreign := pod("slurm-controller-3", "job")
	foreign.OwnerReferences[0].Kind = "Job"
	pods := []corev1.Pod{
		pod("slurm-controller-0", "own"), pod("slurm-controller-1", ""), pod("slurm-controller-2", "before"), foreign,
		pod("slurm-controller-x", "own"), pod("slurm-controller-", ""), pod("debug", ""), pod("debug-0", "own"),
	}
	for name, test := range map[string]struct {
		set  *appsv1.StatefulSet
		want []string
	}{
		"only its own while the StatefulSet exists": {
			&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller", UID: "own"}},
			[]string{"slurm-controller-0"},
		},
		"also orphaned ones while there is none, because they may still run": {
			nil, []string{"slurm-controller-0", "slurm-controller-1", "slurm-controller-2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, pod := range ofStatefulSet(slices.Clone(pods), "slurm-controller", test.set) {
				got = append(got, pod.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestPodsWithOnlyTheLabelsOfAnOwnerAreIgnored(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "own"}}
	got := controlledBy([]corev1.Pod{pod("a", ""), pod("b", "own"), pod("c", "another")}, owner)
	if len(got) != 1 || got[0].Name != "b" {
		t.Errorf("got %v", got)
	}
}
