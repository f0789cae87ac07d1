//go:build integration

package webhook_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// TestDeadWebhookStopsNothing is invariant I15: a dead webhook stops no pod from being scheduled and no object from being deleted.
func TestDeadWebhookStopsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		die func(*world, *replica)
		// patience is how long one request may take.
		patience time.Duration
	}{
		"that was killed":          {func(_ *world, replica *replica) { replica.kill() }, 5 * time.Second},
		"that nobody can reach":    {func(world *world, replica *replica) { world.service.lead(); replica.kill() }, 5 * time.Second},
		"that is there and silent": {func(world *world, replica *replica) { world.service.fallSilent(); replica.kill() }, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			world := newWorld(t, options{})
			replica := world.serve(t)
			node := world.node(t, nil)
			set := &slinkyv1beta1.NodeSet{
				ObjectMeta: metav1.ObjectMeta{Name: "gpu", Namespace: world.namespace, Finalizers: []string{slinkyv1beta1.FinalizerDrain}},
				Spec:       slinkyv1beta1.NodeSetSpec{ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}},
			}
			world.create(t, set)
			test.die(world, replica)

			within(t, test.patience, "binding a pod", func() { world.bound(t, naming.Labels(naming.Slurmd, "gpu"), node) })
			within(t, test.patience, "creating an object", func() {
				world.create(t, &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm", Namespace: world.namespace}})
			})
			// The operator removes the finalizer with an update, which must not wait for anybody either.
			within(t, time.Second, "deleting a NodeSet", func() {
				if err := world.Delete(t.Context(), set); err != nil {
					t.Error(err)
				}
				if err := world.Patch(t.Context(), set, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
					t.Error(err)
				}
			})
			if err := world.Get(t.Context(), client.ObjectKeyFromObject(set), set); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("the NodeSet is still there: %v", err)
			}
		})
	}
}

// within fails when something takes too long.
func within(t *testing.T, limit time.Duration, what string, do func()) {
	t.Helper()
	start := time.Now()
	do()
	if took := time.Since(start); took > limit {
		t.Errorf("%s took %s, and %s is the limit", what, took, limit)
	}
}
