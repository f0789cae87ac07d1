package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

func TestPVCOwners(t *testing.T) {
	const retain, remove = slinkyv1beta1.RetainPVC, slinkyv1beta1.DeletePVC
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "gpu-0", UID: "pod"}}
	for name, test := range map[string]struct {
		whenDeleted, whenScaled slinkyv1beta1.PVCRetentionPolicyType
		scaledIn                bool
		want                    []string
	}{
		"are none if PVCs are retained":               {retain, retain, true, nil},
		"are the NodeSet if PVCs are deleted with it": {remove, retain, true, []string{"NodeSet"}},
		"are the pod at a scale-in":                   {retain, remove, true, []string{"Pod"}},
		"are not the pod at an update":                {retain, remove, false, nil},
		"are both if both policies delete":            {remove, remove, true, []string{"NodeSet", "Pod"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu", UID: "set"}}
			policy := &set.Spec.PersistentVolumeClaimRetentionPolicy
			policy.WhenDeleted, policy.WhenScaled = test.whenDeleted, test.whenScaled
			var kinds []string
			for _, owner := range PVCOwners(set, pod, test.scaledIn) {
				kinds = append(kinds, owner.Kind)
			}
			if diff := cmp.Diff(test.want, kinds); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReplacePVCOwnersKeepsForeignOwners(t *testing.T) {
	foreign := metav1.OwnerReference{Kind: "Backup", UID: "backup"}
	pod, set := metav1.OwnerReference{Kind: "Pod", UID: "pod"}, metav1.OwnerReference{Kind: "NodeSet", UID: "set"}
	replaced, changed := ReplacePVCOwners([]metav1.OwnerReference{foreign, set, pod}, []metav1.OwnerReference{set})
	if diff := cmp.Diff([]metav1.OwnerReference{foreign, set}, replaced); diff != "" || !changed {
		t.Errorf("changed: %t\n%s", changed, diff)
	}
	if _, changed := ReplacePVCOwners(replaced, []metav1.OwnerReference{set}); changed {
		t.Error("correct owners are replaced")
	}
}
