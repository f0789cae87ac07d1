package nodeset

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// createClaims makes the claims of a pod that do not exist yet.
func (r *Reconciler) createClaims(ctx context.Context, scope *scope, pod string) error {
	for _, claim := range worker.Claims(scope.set, pod) {
		live := &corev1.PersistentVolumeClaim{}
		switch err := r.Client.Get(ctx, client.ObjectKeyFromObject(claim), live); {
		case err == nil && live.DeletionTimestamp != nil:
			return fmt.Errorf("pod %s is not created: PVC %s is still being deleted; see what uses it with kubectl describe pvc/%s (%w)",
				pod, claim.Name, claim.Name, errOnlyThisPod)
		case err == nil:
			continue
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading PVC %s: %w", claim.Name, err)
		}
		claim.OwnerReferences = setOwner(scope.set)
		err := r.Client.Create(ctx, claim, client.FieldOwner(naming.ManagedBy))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating PVC %s: %w", claim.Name, err)
		}
	}
	return nil
}

// settleClaims says who the claims of a pod go with: the NodeSet and the pod, as far as the policy wants it. Kubernetes itself
// deletes them after their owners, so that nothing is left, and nothing goes, when the operator stops between the two.
func (r *Reconciler) settleClaims(ctx context.Context, scope *scope, pod *corev1.Pod, withPod bool) error {
	owners := setOwner(scope.set)
	if withPod && scope.set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled == slinkyv1beta1.DeletePVC {
		owners = append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID})
	}
	for _, template := range scope.set.Spec.VolumeClaimTemplates {
		claim := &corev1.PersistentVolumeClaim{}
		name := template.Metadata.Name + "-" + pod.Name
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, claim, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading PVC %s: %w", name, err)
		}
		if err := r.settleClaim(ctx, claim, owners); err != nil {
			return err
		}
	}
	return nil
}

// setOwner is the NodeSet as an owner of claims, where they are to go with it.
func setOwner(set *slinkyv1beta1.NodeSet) []metav1.OwnerReference {
	if set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted != slinkyv1beta1.DeletePVC {
		return nil
	}
	kind := slinkyv1beta1.SchemeGroupVersion.WithKind("NodeSet")
	return []metav1.OwnerReference{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: set.Name, UID: set.UID}}
}

// settleClaim makes a claim go with these owners of our kinds, and leaves owners of other kinds alone.
func (r *Reconciler) settleClaim(ctx context.Context, live *corev1.PersistentVolumeClaim, ours []metav1.OwnerReference) error {
	owners := slices.DeleteFunc(slices.Clone(live.OwnerReferences), func(owner metav1.OwnerReference) bool {
		return owner.Kind == "Pod" || owner.Kind == "NodeSet"
	})
	owners = append(owners, ours...)
	if slices.EqualFunc(owners, live.OwnerReferences, func(a, b metav1.OwnerReference) bool { return a.UID == b.UID }) {
		return nil
	}
	claim := live.DeepCopy()
	claim.OwnerReferences = owners
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, claim, patch, client.FieldOwner(naming.ManagedBy)); err != nil {
		return fmt.Errorf("setting the owners of PVC %s: %w", claim.Name, err)
	}
	return nil
}

// keepClaims takes claims back from pods that are not to go after all, and follows a changed policy. It makes those anew that a pod lost
// before it came onto a machine, from when on Kubernetes keeps them.
func (r *Reconciler) keepClaims(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	if len(scope.set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	leaving := next.Goes()
	return evenly(ctx, len(scope.pods), marksAtOnce, func(index int) error {
		pod := &scope.pods[index]
		if leaving[pod.Name] || pod.DeletionTimestamp != nil {
			return nil
		}
		if pod.Spec.NodeName == "" {
			if err := r.createClaims(ctx, scope, pod.Name); err != nil {
				return err
			}
		}
		return r.settleClaims(ctx, scope, pod, false)
	})
}
