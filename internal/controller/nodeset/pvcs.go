package nodeset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// createPVCs creates the PVCs of a pod that do not exist yet.
func (r *Reconciler) createPVCs(ctx context.Context, scope *scope, pod string) error {
	for _, pvc := range worker.PVCs(scope.set, pod) {
		live := &corev1.PersistentVolumeClaim{}
		switch err := r.Client.Get(ctx, client.ObjectKeyFromObject(pvc), live); {
		case err == nil && live.DeletionTimestamp != nil:
			return fmt.Errorf(
				"pod %s is not created: PVC %s is still being deleted; see what uses it with kubectl describe "+
					"pvc/%s (%w)",
				pod, pvc.Name, pvc.Name, errOnlyThisPod)
		case err == nil:
			continue
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading PVC %s: %w", pvc.Name, err)
		}
		pvc.OwnerReferences = desired.PVCOwners(scope.set, nil, false)
		err := r.Client.Create(ctx, pvc, client.FieldOwner(naming.ManagedBy))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating PVC %s: %w", pvc.Name, err)
		}
	}
	return nil
}

// updatePVCOwners makes the PVCs of a pod follow the retention policy.
func (r *Reconciler) updatePVCOwners(ctx context.Context, scope *scope, pod *corev1.Pod, scaledIn bool) error {
	owners := desired.PVCOwners(scope.set, pod, scaledIn)
	for _, template := range scope.set.Spec.VolumeClaimTemplates {
		pvc, name := &corev1.PersistentVolumeClaim{}, worker.PVCName(template, pod.Name)
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, pvc,
			client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading PVC %s: %w", name, err)
		}
		if err := r.patchPVCOwners(ctx, pvc, owners); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) patchPVCOwners(ctx context.Context, live *corev1.PersistentVolumeClaim,
	owners []metav1.OwnerReference) error {
	replaced, changed := desired.ReplacePVCOwners(live.OwnerReferences, owners)
	if !changed {
		return nil
	}
	pvc := live.DeepCopy()
	pvc.OwnerReferences = replaced
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, pvc, patch, client.FieldOwner(naming.ManagedBy)); err != nil {
		return fmt.Errorf("setting the owners of PVC %s: %w", pvc.Name, err)
	}
	return nil
}

// reconcilePVCs removes pods as owners if they are not deleted after all, follows a changed retention policy, and
// re-creates PVCs that were deleted before their pod was scheduled. After that Kubernetes itself protects them.
func (r *Reconciler) reconcilePVCs(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	if len(scope.set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	deleted := next.Deleted()
	return inParallel(ctx, len(scope.pods), parallelUpdates, func(index int) error {
		pod := &scope.pods[index]
		if deleted[pod.Name] || pod.DeletionTimestamp != nil {
			return nil
		}
		if pod.Spec.NodeName == "" {
			if err := r.createPVCs(ctx, scope, pod.Name); err != nil {
				return err
			}
		}
		return r.updatePVCOwners(ctx, scope, pod, false)
	})
}
