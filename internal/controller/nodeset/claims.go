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
func (r *Reconciler) createClaims(ctx context.Context, scope *scope, identity worker.Identity) error {
	for _, claim := range worker.Claims(scope.set, identity) {
		live := &corev1.PersistentVolumeClaim{}
		switch err := r.Client.Get(ctx, client.ObjectKeyFromObject(claim), live); {
		case err == nil && live.DeletionTimestamp != nil:
			return fmt.Errorf("claim %s is still being deleted, and its pod waits for a new one", claim.Name)
		case err == nil:
			continue
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading claim %s: %w", claim.Name, err)
		}
		err := r.Client.Create(ctx, claim, client.FieldOwner(naming.ManagedBy))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating claim %s: %w", claim.Name, err)
		}
	}
	return nil
}

// settleClaims makes the claims of a pod go with it, or stay. Kubernetes itself deletes them after the pod that owns them, so
// that nothing is left, and nothing goes, when the operator stops between the two.
func (r *Reconciler) settleClaims(ctx context.Context, scope *scope, pod *corev1.Pod, withPod bool) error {
	policy := scope.set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled
	goes := withPod && policy == slinkyv1beta1.DeletePVC
	for _, template := range scope.set.Spec.VolumeClaimTemplates {
		claim := &corev1.PersistentVolumeClaim{}
		name := template.Metadata.Name + "-" + pod.Name
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, claim); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return fmt.Errorf("reading claim %s: %w", name, err)
		}
		if err := r.settleClaim(ctx, claim, pod, goes); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) settleClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod, goes bool) error {
	owners := slices.DeleteFunc(slices.Clone(claim.OwnerReferences), func(owner metav1.OwnerReference) bool { return owner.Kind == "Pod" })
	if goes {
		owners = append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID})
	}
	if slices.EqualFunc(owners, claim.OwnerReferences, func(a, b metav1.OwnerReference) bool { return a.UID == b.UID }) {
		return nil
	}
	before := claim.DeepCopy()
	claim.OwnerReferences = owners
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, claim, patch, client.FieldOwner(naming.ManagedBy)); err != nil {
		return fmt.Errorf("saying who owns claim %s: %w", claim.Name, err)
	}
	return nil
}

// keepClaims takes claims back from pods that are not to go after all: what was to go with a scale-in stays with its pod when
// the scale-in is reversed.
func (r *Reconciler) keepClaims(ctx context.Context, scope *scope, next *plan.Plan) error {
	if len(scope.set.Spec.VolumeClaimTemplates) == 0 || scope.set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled != slinkyv1beta1.DeletePVC {
		return nil
	}
	leaving := map[string]bool{}
	for _, action := range next.Actions {
		if action.Kind == plan.Delete {
			leaving[action.Pod.Name] = true
		}
	}
	return evenly(len(scope.pods), func(index int) error {
		pod := &scope.pods[index]
		if leaving[pod.Name] || pod.DeletionTimestamp != nil {
			return nil
		}
		return r.settleClaims(ctx, scope, pod, false)
	})
}
