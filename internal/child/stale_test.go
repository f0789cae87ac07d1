package child_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
)

// staleClient reads from a cache, which may be stale. Each request to apply something changes the spec.
type staleClient struct {
	client.Client
	cached  *appsv1.Deployment // nil if there is none
	applied int64
}

// GroupVersionKindFor returns the resource type of the owner.
func (c *staleClient) GroupVersionKindFor(runtime.Object) (schema.GroupVersionKind, error) {
	return slinkyv1beta1.SchemeGroupVersion.WithKind("LoginSet"), nil
}

// Get reads the cache.
func (c *staleClient) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if c.cached == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "deployments"}, key.Name)
	}
	c.cached.DeepCopyInto(object.(*appsv1.Deployment))
	return nil
}

// Apply changes the Deployment.
func (c *staleClient) Apply(_ context.Context, configuration runtime.ApplyConfiguration,
	_ ...client.ApplyOption) error {
	c.applied++
	content := configuration.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()
	content["metadata"].(map[string]any)["generation"] = c.applied
	return nil
}

// A status that is derived from a stale Deployment would say that the pods are as the spec wants them, while those of a
// change that was undone are still being replaced.
func TestStaleChildIsAppliedAgainAfterAChangeWasUndone(t *testing.T) {
	stale := &staleClient{}
	applier := child.NewApplier(stale)
	owner := &slinkyv1beta1.LoginSet{ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "login", UID: "owner"}}
	apply := func(replicas int32) *appsv1.Deployment {
		t.Helper()
		live := &appsv1.Deployment{}
		err := applier.Apply(t.Context(), owner, applyappsv1.Deployment("login", "hpc").
			WithSpec(applyappsv1.DeploymentSpec().WithReplicas(replicas)), live)
		if err != nil {
			t.Fatal(err)
		}
		return live
	}
	stale.cached = apply(1)
	if apply(1); stale.applied != 1 {
		t.Errorf("%d requests for an unchanged Deployment", stale.applied-1)
	}
	apply(2)
	undone := apply(1)
	if live := apply(1); live.Generation < undone.Generation {
		t.Errorf("the Deployment is read in generation %d, and is in generation %d", live.Generation, undone.Generation)
	}
	stale.cached = apply(1)
	before := stale.applied
	if apply(1); stale.applied != before {
		t.Error("an unchanged Deployment is applied again when the cache is not stale any more")
	}
}
