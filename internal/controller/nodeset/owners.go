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
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/retry"
)

// orphaning tells whether a NodeSet is being deleted without what it owns: nothing of that is to be touched.
func orphaning(set *slinkyv1beta1.NodeSet) bool {
	return set.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(set, metav1.FinalizerOrphanDependents)
}

// claim tells whether a pod is the set's own, and notes those that are to become so or cease to be. What has the labels of a NodeSet
// and belongs to nobody is taken over, such as what was left when a NodeSet of that name was deleted with --cascade=orphan. A pod
// that has lost the labels is let go, as it is.
func (s *scope) claim(pod *corev1.Pod, selector labels.Selector) (own bool) {
	matches := selector.Matches(labels.Set(pod.Labels))
	switch {
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

// named tells whether a pod has a name that the set gives, and is a node of the set's cluster.
func named(set *slinkyv1beta1.NodeSet, pod *corev1.Pod) bool {
	name := naming.NodeWorkerPod(set, machine(pod))
	if !isDaemonSet(set) {
		name = naming.WorkerPod(set, ordinal(pod))
	}
	return pod.Name == name && pod.Labels[naming.LabelController] == set.Spec.ControllerRef.Name
}

// observeOrphans finds what else than pods is to be taken over.
func (r *Reconciler) observeOrphans(ctx context.Context, scope *scope) error {
	if scope.set.DeletionTimestamp != nil {
		return nil
	}
	for _, list := range []client.ObjectList{&appsv1.ControllerRevisionList{}, &policyv1.PodDisruptionBudgetList{}, &corev1.ConfigMapList{}} {
		err := r.Client.List(ctx, list, client.InNamespace(scope.set.Namespace),
			client.MatchingLabels(naming.Labels(naming.Slurmd, scope.set.Name)), client.UnsafeDisableDeepCopy)
		if err != nil {
			return err
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
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

// settleOwners lets pods go and takes objects over. What is to become of them is decided when the cache shows whose they are.
func (r *Reconciler) settleOwners(ctx context.Context, scope *scope) (ctrl.Result, error) {
	err := errors.Join(r.release(ctx, scope), r.adopt(ctx, scope))
	if err != nil {
		next := plan.Next(&scope.snapshot)
		err = errors.Join(err, r.report(ctx, scope, &next, outcome{failure: err}))
	}
	return retry.After(time.Second, err)
}

func (r *Reconciler) release(ctx context.Context, scope *scope) error {
	return evenly(ctx, len(scope.strays), marksAtOnce, func(index int) error {
		stray := scope.strays[index]
		others := slices.DeleteFunc(slices.Clone(stray.GetOwnerReferences()), func(owner metav1.OwnerReference) bool { return owner.UID == scope.set.UID })
		return r.setOwners(ctx, "letting go of", stray, others)
	})
}

// adopt takes objects over. The cache may not show yet that the NodeSet is being deleted, or is another one of the same name: the
// API server is asked first.
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
	return evenly(ctx, len(scope.orphans), marksAtOnce, func(index int) error {
		orphan := scope.orphans[index]
		return r.setOwners(ctx, "taking over", orphan, append(slices.Clone(orphan.GetOwnerReferences()), reference))
	})
}

// setOwners says whose an object is, if it is as it was when it was looked at; otherwise it is looked at again.
func (r *Reconciler) setOwners(ctx context.Context, doing string, object client.Object, owners []metav1.OwnerReference) error {
	written, _ := object.DeepCopyObject().(client.Object) // the cache's own must not be written to
	written.SetOwnerReferences(owners)
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	err := r.Client.Patch(ctx, written, patch, client.FieldOwner(naming.ManagedBy))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("%s %s: %w", doing, object.GetName(), err)
	}
	return nil
}
