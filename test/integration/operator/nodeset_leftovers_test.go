//go:build integration

package operator_test

import (
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// Another operator that ran the cluster before left its finalizer, which no controller would remove.
func TestFinalizerOfAnotherOperatorDoesNotBlockDeletion(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(1))
	w.get(t, w.set.Name, w.set)
	w.patch(t, w.set, `{"metadata":{"finalizers":[%q,%q]}}`, slinkyv1beta1.FinalizerDrain,
		slinkyv1beta1.FinalizerReservation)
	w.waitUntilIdle(t)
	if err := w.Delete(t.Context(), w.set); err != nil {
		t.Fatal(err)
	}
	w.gone(t, "gpu", w.set)
	w.hasPods(t)
}
