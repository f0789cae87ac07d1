//go:build integration

package webhook_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// TestDeadWebhookStopsNothing checks invariant I15: a dead webhook does not block scheduling of pods or deletion of
// objects.
func TestDeadWebhookStopsNothing(t *testing.T) {
	// The API server waits for a dead webhook for as long as the configuration says.
	const maxTimeout = 5
	for _, configuration := range manifests(t, "config/webhook/manifests.yaml") {
		webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
		if err != nil {
			t.Fatal(err)
		}
		for _, webhook := range webhooks {
			if timeout, _, err := unstructured.NestedFloat64(webhook.(map[string]any), "timeoutSeconds"); err != nil ||
				timeout < 1 || timeout > maxTimeout {
				t.Errorf("webhook %v has a timeout of %v s: %v", webhook.(map[string]any)["name"], timeout, err)
			}
		}
	}
	for name, die := range map[string]func(*world, *replica){
		"that was killed":     func(_ *world, replica *replica) { replica.kill() },
		"that is unreachable": func(world *world, replica *replica) { world.service.route(); replica.kill() },
		"that never answers":  func(world *world, replica *replica) { world.service.hang(); replica.kill() },
	} {
		t.Run(name, func(t *testing.T) {
			world := newWorld(t, options{})
			replica := world.serve(t)
			node := world.node(t, nil)
			set := &slinkyv1beta1.NodeSet{
				ObjectMeta: metav1.ObjectMeta{
					Name: "gpu", Namespace: world.namespace, Finalizers: []string{slinkyv1beta1.FinalizerDrain},
				},
				Spec: slinkyv1beta1.NodeSetSpec{ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}},
			}
			world.create(t, set)
			die(world, replica)

			world.bound(t, naming.Labels(naming.Slurmd, "gpu"), node)
			world.create(t, &slinkyv1beta1.Controller{
				ObjectMeta: metav1.ObjectMeta{Name: "slurm", Namespace: world.namespace},
			})
			if world.service.connections() == 0 {
				t.Error("the API server called no webhook")
			}
			// A deletion calls no webhook, nor does the update by which the operator removes its finalizer.
			before := world.service.connections()
			if err := world.Delete(t.Context(), set); err != nil {
				t.Error(err)
			}
			if err := world.Patch(t.Context(), set,
				client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
				t.Error(err)
			}
			if calls := world.service.connections() - before; calls != 0 {
				t.Errorf("a deletion called webhooks %d times", calls)
			}
			if err := world.Get(t.Context(), client.ObjectKeyFromObject(set), set); client.IgnoreNotFound(err) != nil ||
				err == nil {
				t.Errorf("the NodeSet still exists: %v", err)
			}
		})
	}
}
