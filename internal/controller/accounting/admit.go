package accounting

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/slurm-operator/slurm-operator/internal/child"
)

// A StatefulSet reports only in events that Kubernetes refuses its pod, because of a ResourceQuota, a LimitRange or Pod
// Security. So that is checked before the pod of a slurmdbd is deleted, and when the StatefulSet has none.

// podCreationTimeout is how long to wait for Kubernetes to create slurmdbd's pod before checking whether it is refused.
const podCreationTimeout = 5 * time.Second

// lacksPod reports whether the StatefulSet still has no pod after podCreationTimeout.
func (s *scope) lacksPod() bool {
	set := s.statefulSet
	return len(s.pods) == 0 && set != nil && s.now.Sub(set.CreationTimestamp.Time) > podCreationTimeout
}

// admitsFirst returns an error if the StatefulSet has no pod because Kubernetes refuses it.
func (r *Reconciler) admitsFirst(ctx context.Context, scope *scope) error {
	if !scope.lacksPod() {
		return nil
	}
	err := r.Children.Admits(ctx, scope.statefulSet)
	if _, refused := child.Refusal(err); refused {
		return err
	}
	return nil // the StatefulSet retries
}

// admitsNext returns an error if Kubernetes would refuse the pod that replaces one. A quota that is used up has room
// again when the pod is deleted, unless the next one needs more.
func (r *Reconciler) admitsNext(ctx context.Context, scope *scope, pod *corev1.Pod) error {
	err := r.Children.Admits(ctx, scope.statefulSet)
	isFull := child.ExceedsQuota(err)
	if err == nil || isFull && !needsMore(&scope.statefulSet.Spec.Template.Spec, &pod.Spec) {
		return nil
	}
	state := "pod " + pod.Name + " has to be replaced, and runs until Kubernetes admits the next one"
	if isFull {
		state += " beside it; if the quota has room without it, delete the pod"
	}
	return fmt.Errorf("%s: %w", state, err)
}

// needsMore reports whether a pod requests more of a resource than another one, or has a higher limit.
func needsMore(next, than *corev1.PodSpec) bool {
	wants, had := &corev1.Pod{Spec: *next}, &corev1.Pod{Spec: *than}
	var options resource.PodResourcesOptions
	return exceeds(resource.PodRequests(wants, options), resource.PodRequests(had, options)) ||
		exceeds(resource.PodLimits(wants, options), resource.PodLimits(had, options))
}

func exceeds(amounts, others corev1.ResourceList) bool {
	for name, amount := range amounts {
		if other := others[name]; amount.Cmp(other) > 0 {
			return true
		}
	}
	return false
}
