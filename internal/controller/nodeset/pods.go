package nodeset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// A podPatch is a patch for a pod, and how it is written.
type podPatch struct {
	data  []byte
	write func(context.Context, *corev1.Pod, []byte) error
}

// protectPods writes onto the pods whether they may be evicted, and until when their jobs run. It depends on no other
// step: while Slurm refuses one request, other jobs stay protected. A pod whose drain is about to be lifted is
// protected first.
func (r *Reconciler) protectPods(ctx context.Context, scope *scope, next *plan.Plan) error {
	return r.patchPods(ctx, scope, next, len(scope.pods), func(index int) podPatch {
		pod, protection := &scope.pods[index], next.Protections[index]
		if protection == plan.UnknownProtection {
			return podPatch{} // its present label may be right
		}
		protect := protection == plan.Protected
		load := scope.snapshot.Slurm.Loads[scope.snapshot.Pods[index].SlurmNode]
		return podPatch{desired.PodMetadata(pod, protect, load),
			func(ctx context.Context, pod *corev1.Pod, patch []byte) error {
				return r.patchMetadata(becauseOfProtection(ctx, pod, protect), scope, pod, patch)
			}}
	})
}

// becauseOfProtection logs that evictions of a pod are refused, or allowed, from now on. A changed deadline alone is
// bookkeeping.
func becauseOfProtection(ctx context.Context, pod *corev1.Pod, protect bool) context.Context {
	switch _, protected := pod.Labels[slinkyv1beta1.LabelPodProtect]; {
	case protected == protect:
		return trace.Quietly(ctx)
	case protect:
		return trace.Because(ctx, "Protection", "its node may have jobs: evictions are refused")
	default:
		return trace.Because(ctx, "Protection", "its Slurm node is closed or gone, and has no jobs: evictions are allowed")
	}
}

// updatePodConditions makes the conditions of pods show the states of their Slurm nodes.
func (r *Reconciler) updatePodConditions(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	return r.patchPods(ctx, scope, next, maxUpdates(scope, next), func(index int) podPatch {
		known := &scope.snapshot.Pods[index]
		record, _ := scope.snapshot.Slurm.Node(known.SlurmNode)
		return podPatch{
			desired.PodConditions(&scope.pods[index], record, known.Identified(record), scope.now),
			func(ctx context.Context, pod *corev1.Pod, patch []byte) error {
				return r.patchConditions(ctx, scope, pod, patch)
			},
		}
	})
}

// patchPods writes to at most limit pods that need a patch. Pods that are deleted next are skipped.
func (r *Reconciler) patchPods(ctx context.Context, scope *scope, next *plan.Plan, limit int,
	patchOf func(index int) podPatch) error {
	if scope.snapshot.Slurm == nil || !scope.snapshot.Answers {
		return nil // the known state may be wrong by now
	}
	deleted := next.Deleted()
	var writes []func() error
	for i := range scope.pods {
		pod := &scope.pods[i]
		if pod.DeletionTimestamp != nil || deleted[pod.Name] || len(writes) == limit ||
			r.expectations.stale(scope.set.UID, pod) {
			continue
		}
		if patch := patchOf(i); patch.data != nil {
			writes = append(writes, func() error { return patch.write(ctx, pod, patch.data) })
		}
	}
	return inParallel(ctx, len(writes), parallelUpdates, func(index int) error { return writes[index]() })
}

// maxUpdates returns how many pods get new conditions, and how many descriptions Slurm gets, in one reconcile: few
// while many pods have yet to start, which is more urgent and needs the same servers. The event of each write leads to
// the next reconcile.
func maxUpdates(scope *scope, next *plan.Plan) int {
	starting := len(next.Of(plan.Create))
	for i := range scope.snapshot.Pods {
		if scope.snapshot.Pods[i].ReadySince.IsZero() {
			starting++
		}
	}
	if starting > parallelUpdates && starting > len(scope.pods)/50 {
		return updatesWhileStarting
	}
	return max(updatesPerReconcile, len(scope.pods)/updateRounds)
}

func (r *Reconciler) patchMetadata(ctx context.Context, scope *scope, pod *corev1.Pod, patch []byte) error {
	written := podReference(pod)
	if err := r.Client.Patch(ctx, written, client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(naming.ManagedBy)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("marking pod %s: %w", pod.Name, err))
	}
	r.expectations.expectWritten(scope.set.UID, written)
	return nil
}

func (r *Reconciler) patchConditions(ctx context.Context, scope *scope, pod *corev1.Pod, data []byte) error {
	written, patch := podReference(pod), client.RawPatch(types.StrategicMergePatchType, data)
	if err := r.Client.Status().
		Patch(trace.Quietly(ctx), written, patch, client.FieldOwner(naming.ManagedBy)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the conditions of pod %s: %w", pod.Name, err))
	}
	r.expectations.expectWritten(scope.set.UID, written)
	return nil
}

// podReference returns a pod to patch: the one in the cache must not be changed.
func podReference(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
}
