package desired

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// PVCOwners returns the ownerReferences of the PVCs of a pod, as the retention policy asks for: the NodeSet, and also
// the pod when its ordinal is scaled in. Kubernetes deletes the PVCs after their owners, so nothing is left over, and
// nothing deleted too early, if the operator stops in between.
func PVCOwners(set *slinkyv1beta1.NodeSet, pod *corev1.Pod, scaledIn bool) []metav1.OwnerReference {
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	var owners []metav1.OwnerReference
	if policy.WhenDeleted == slinkyv1beta1.DeletePVC {
		kind := slinkyv1beta1.SchemeGroupVersion.WithKind("NodeSet")
		owners = append(owners, metav1.OwnerReference{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: set.Name, UID: set.UID,
		})
	}
	if scaledIn && policy.WhenScaled == slinkyv1beta1.DeletePVC {
		owners = append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID})
	}
	return owners
}

// ReplacePVCOwners returns the current ownerReferences with those to pods and NodeSets replaced, and whether that
// changes them.
func ReplacePVCOwners(current, owners []metav1.OwnerReference) (replaced []metav1.OwnerReference, changed bool) {
	replaced = slices.DeleteFunc(slices.Clone(current), func(owner metav1.OwnerReference) bool {
		return owner.Kind == "Pod" || owner.Kind == "NodeSet"
	})
	replaced = append(replaced, owners...)
	return replaced, !slices.EqualFunc(replaced, current,
		func(a, b metav1.OwnerReference) bool { return a.UID == b.UID })
}
