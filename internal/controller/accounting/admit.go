package accounting

import (
	"context"
	"time"

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
