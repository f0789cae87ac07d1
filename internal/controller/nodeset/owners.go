package nodeset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/observation"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/retry"
)

// orphaning reports whether a NodeSet is being deleted with --cascade=orphan: its pods must not be touched.
func orphaning(set *slinkyv1beta1.NodeSet) bool {
	return set.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(set, metav1.FinalizerOrphanDependents)
}

// owns reports whether a pod belongs to the NodeSet, and collects those to adopt or release. An object with the labels
// of the NodeSet and without an owner is adopted, such as the orphans of an earlier NodeSet of the same name. A pod
// that has lost the labels is released unchanged.
func (s *scope) owns(pod *corev1.Pod, selector labels.Selector) (own bool) {
	matches := selector.Matches(labels.Set(pod.Labels))
	switch {
	case metav1.IsControlledBy(pod, s.set) && !worker.IsOwn(pod):
		s.foreign = append(s.foreign, pod)
		return true
	case metav1.IsControlledBy(pod, s.set) && matches:
		return true
	case pod.DeletionTimestamp != nil:
	case metav1.IsControlledBy(pod, s.set):
		s.strays = append(s.strays, pod)
	case matches && metav1.GetControllerOfNoCopy(pod) == nil && s.set.DeletionTimestamp == nil && named(s.set, pod):
		s.orphans = append(s.orphans, pod)
	}
	return false
}

// named reports whether a pod has a name of this NodeSet, and belongs to its cluster.
func named(set *slinkyv1beta1.NodeSet, pod *corev1.Pod) bool {
	name := naming.NodeWorkerPod(set, observation.HostOf(pod))
	if !observation.IsDaemonSet(set) {
		name = naming.WorkerPod(set, observation.Ordinal(pod))
	}
	return pod.Name == name && pod.Labels[naming.LabelController] == set.Spec.ControllerRef.Name
}

// observeOrphans finds objects other than pods to adopt.
func (r *Reconciler) observeOrphans(ctx context.Context, scope *scope) error {
	if scope.set.DeletionTimestamp != nil {
		return nil
	}
	for _, list := range []client.ObjectList{&appsv1.ControllerRevisionList{}, &policyv1.PodDisruptionBudgetList{},
		&corev1.ConfigMapList{}} {
		err := r.Client.List(ctx, list, client.InNamespace(scope.set.Namespace),
			client.MatchingLabels(naming.Managed(naming.Slurmd, scope.set.Name)), client.UnsafeDisableDeepCopy)
		if err != nil {
			return err
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if _, revision := item.(*appsv1.ControllerRevision); revision {
				ok = namedLikeRevision(scope.set, object)
			}
			if ok && metav1.GetControllerOfNoCopy(object) == nil && object.GetDeletionTimestamp() == nil {
				scope.orphans = append(scope.orphans, object)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// settleOwners releases pods and adopts objects. Decisions about them follow when the cache shows their owners.
func (r *Reconciler) settleOwners(ctx context.Context, scope *scope) (ctrl.Result, error) {
	err := errors.Join(r.release(ctx, scope), r.adopt(ctx, scope))
	if err != nil {
		next := plan.Next(&scope.snapshot)
		err = errors.Join(err, r.report(ctx, scope, &next, outcome{failure: err}))
	}
	return retry.After(time.Second, err)
}

func (r *Reconciler) release(ctx context.Context, scope *scope) error {
	return inParallel(ctx, len(scope.strays), parallelUpdates, func(index int) error {
		stray := scope.strays[index]
		others := slices.DeleteFunc(slices.Clone(stray.GetOwnerReferences()),
			func(owner metav1.OwnerReference) bool { return owner.UID == scope.set.UID })
		return r.setOwners(ctx, "releasing", stray, others)
	})
}

// adopt adopts objects. It reads the NodeSet from the API server first: the cache may not show yet that it is being
// deleted, or is another one of the same name.
func (r *Reconciler) adopt(ctx context.Context, scope *scope) error {
	if len(scope.orphans) == 0 {
		return nil
	}
	live := &slinkyv1beta1.NodeSet{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(scope.set), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if live.UID != scope.set.UID || live.DeletionTimestamp != nil {
		return nil
	}
	reference := *metav1.NewControllerRef(live, slinkyv1beta1.SchemeGroupVersion.WithKind("NodeSet"))
	return inParallel(ctx, len(scope.orphans), parallelUpdates, func(index int) error {
		orphan := scope.orphans[index]
		return r.setOwners(ctx, "adopting", orphan, append(slices.Clone(orphan.GetOwnerReferences()), reference))
	})
}

// setOwners replaces the ownerReferences of an object, unless it has changed since it was read.
func (r *Reconciler) setOwners(ctx context.Context, doing string, object client.Object,
	owners []metav1.OwnerReference) error {
	written, _ := object.DeepCopyObject().(client.Object) // the one in the cache must not be changed
	written.SetOwnerReferences(owners)
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	err := r.Client.Patch(ctx, written, patch, client.FieldOwner(naming.ManagedBy))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("%s %s: %w", doing, object.GetName(), err)
	}
	return nil
}
