// Package child writes the objects that a custom resource owns.
//
// Children are written with server-side apply under one field owner: fields set by others are kept, the operator's
// fields are reset if they drift, and no comparison is needed. To avoid requests in steady state, an Applier remembers
// the last applied configuration of each child and the resulting object without its status; while both are the same, it
// sends nothing. After a restart it applies every child once, which changes nothing on the server.
package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/applied"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// An Applier writes children. It may be shared by all controllers.
type Applier struct {
	client client.Client
	memory applied.Memory[key]
}

// A key identifies a child.
type key struct {
	kind schema.GroupKind
	name types.NamespacedName
}

// NewApplier returns an Applier.
func NewApplier(client client.Client) *Applier {
	return &Applier{client: client}
}

// A ForeignError reports that an object exists that the owner does not own.
type ForeignError struct {
	Kind, Name string
	Owner      string
}

// Error returns the conflict and the remedy.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s %s exists and is not owned by %s; delete it, or choose another name", e.Kind, e.Name,
		e.Owner)
}

// Apply applies desired, owned by owner, and fills live with the resulting object. If an object with that name exists
// and owner does not own it, it is not changed: the error is a *ForeignError.
func (a *Applier) Apply(ctx context.Context, owner client.Object, desired runtime.ApplyConfiguration,
	live client.Object) error {
	configuration, err := a.owned(owner, desired)
	if err != nil {
		return err
	}
	kind, name := configuration.GroupVersionKind(), client.ObjectKeyFromObject(configuration)
	found, err := a.find(ctx, owner, kind, name, live)
	if err != nil {
		return err
	}
	id, asked := key{kind.GroupKind(), name}, runtime.DeepCopyJSON(configuration.Object)
	var was map[string]any
	if found {
		if was, err = settable(live); err != nil {
			return err
		}
		if a.memory.Unchanged(id, asked, version(live, was)) {
			return nil
		}
	}
	err = a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration),
		client.FieldOwner(naming.ManagedBy), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", kind.Kind, name.Name, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(configuration.Object, live); err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, name.Name, err)
	}
	is, err := settable(live)
	if err != nil {
		return err
	}
	a.memory.Remember(id, asked, version(live, is))
	trace.Applied(ctx, kind.Kind, name.Name, !found, trace.Fields(was, is))
	return nil
}

// Change changes live, a child that was just read, as change does. If live is stale, nothing is changed: the event of
// the other change leads to another decision.
func (a *Applier) Change(ctx context.Context, live client.Object, change func()) error {
	before := live.DeepCopyObject().(client.Object)
	change()
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	err := a.client.Patch(ctx, live, patch, client.FieldOwner(naming.ManagedBy))
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("changing %s: %w", live.GetName(), err)
	}
	return nil
}

// Accepts returns the error with which Apply would fail; nil if it would not. Nothing is changed.
func (a *Applier) Accepts(ctx context.Context, owner client.Object, desired runtime.ApplyConfiguration,
	live client.Object) error {
	configuration, err := a.owned(owner, desired)
	if err != nil {
		return err
	}
	kind, name := configuration.GroupVersionKind(), client.ObjectKeyFromObject(configuration)
	if _, err := a.find(ctx, owner, kind, name, live); err != nil {
		return err
	}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration),
		client.FieldOwner(naming.ManagedBy), client.ForceOwnership, client.DryRunAll); err != nil {
		return fmt.Errorf("applying %s %s: %w", kind.Kind, name.Name, err)
	}
	return nil
}

// Delete deletes a child, if it exists and owner owns it. Only the name of object must be set.
func (a *Applier) Delete(ctx context.Context, owner, object client.Object) error {
	kind, err := a.client.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	name := client.ObjectKeyFromObject(object)
	found, err := a.find(ctx, owner, kind, name, object)
	if foreign := (*ForeignError)(nil); errors.As(err, &foreign) {
		return nil
	}
	if err != nil || !found || object.GetDeletionTimestamp() != nil {
		return err
	}
	a.memory.Forget(key{kind.GroupKind(), name})
	uid := object.GetUID()
	err = a.client.Delete(ctx, object, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s %s: %w", kind.Kind, name.Name, err)
	}
	return nil
}

// ApplyBudget applies a PodDisruptionBudget, or deletes it if desired is nil.
func (a *Applier) ApplyBudget(ctx context.Context, owner client.Object, name string,
	desired *applypolicyv1.PodDisruptionBudgetApplyConfiguration) error {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: name}}
	if desired == nil {
		return a.Delete(ctx, owner, budget)
	}
	return a.Apply(ctx, owner, desired, budget)
}

// Touch sets an annotation of a pod only to make its kubelet sync the pod: it then updates mounted ConfigMaps and
// Secrets at once instead of within a minute and a half. A kubelet that has not yet seen the new contents syncs the old
// ones.
func (a *Applier) Touch(ctx context.Context, pod client.Object, annotation, value string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{annotation: value}},
	})
	if err != nil {
		return err
	}
	if err := a.client.Patch(trace.Quietly(ctx), pod,
		client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("touching pod %s: %w", pod.GetName(), err)
	}
	return nil
}

// Replace deletes a pod, so that its StatefulSet creates another, and reports whether it did. Unless grace is 0, the
// pod has that long to terminate, whatever its spec says. A pod that has changed since it was read, such as one that
// has just been restarted, is left alone: its event leads to another decision.
func (a *Applier) Replace(ctx context.Context, pod client.Object, grace time.Duration) (bool, error) {
	return a.deletePod(trace.Because(ctx, "PodOutdated", "the pod template has changed"), pod, grace)
}

// ShortenTermination gives a pod that is being deleted less time to terminate, unless it has changed since it was read.
func (a *Applier) ShortenTermination(ctx context.Context, pod client.Object, grace time.Duration) error {
	_, err := a.deletePod(trace.Because(ctx, "PodTerminating", "the pod needs less time to terminate"), pod, grace)
	return err
}

func (a *Applier) deletePod(ctx context.Context, pod client.Object, grace time.Duration) (bool, error) {
	uid, version := pod.GetUID(), pod.GetResourceVersion()
	options := []client.DeleteOption{client.Preconditions{UID: &uid, ResourceVersion: &version}}
	if grace > 0 {
		options = append(options, client.GracePeriodSeconds(grace/time.Second))
	}
	err := a.client.Delete(ctx, pod, options...)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("deleting pod %s: %w", pod.GetName(), err)
	}
	return true, nil
}

// CreateOnce creates an object without ownerReference, such as a generated key or the saved state, unless it exists. It
// survives deletion of the custom resource, so that a re-created one finds it. CreateOnce fills object with the
// existing object.
func (a *Applier) CreateOnce(ctx context.Context, object client.Object) error {
	wanted := object.DeepCopyObject().(client.Object)
	err := a.client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if !apierrors.IsNotFound(err) {
		return err
	}
	err = a.client.Create(ctx, wanted, client.FieldOwner(naming.ManagedBy))
	if err != nil {
		// If the object exists but the cache is stale, the next reconcile finds it.
		return fmt.Errorf("creating %s: %w", wanted.GetName(), err)
	}
	return overwrite(object, wanted)
}

// find reads an object, and returns a *ForeignError if owner does not own it.
func (a *Applier) find(ctx context.Context, owner client.Object, kind schema.GroupVersionKind,
	name types.NamespacedName, live client.Object) (bool, error) {
	switch err := a.client.Get(ctx, name, live); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %s %s: %w", kind.Kind, name.Name, err)
	case !metav1.IsControlledBy(live, owner):
		return true, a.foreign(owner, kind.Kind, name.Name)
	}
	return true, nil
}

func (a *Applier) foreign(owner client.Object, kind, name string) error {
	ownerKind, err := a.client.GroupVersionKindFor(owner)
	if err != nil {
		return err
	}
	return &ForeignError{Kind: kind, Name: name, Owner: ownerKind.Kind + " " + owner.GetName()}
}

// owned returns the configuration with the ownerReference.
func (a *Applier) owned(owner client.Object, desired runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	kind, err := a.client.GroupVersionKindFor(owner)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(desired)
	if err != nil {
		return nil, err
	}
	configuration := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &configuration.Object); err != nil {
		return nil, err
	}
	configuration.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)})
	return configuration, nil
}

// settable returns the fields of an object that a client can set: without the status and the server's own metadata.
func settable(object client.Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			delete(metadata, field)
		}
	}
	// Objects from the cache have no apiVersion and kind; those from the server do.
	for _, field := range []string{"status", "apiVersion", "kind"} {
		delete(fields, field)
	}
	return fields, nil
}

// version returns what identifies the version of an object: its settable fields, and how often its spec has changed.
// The fields alone can be those of an earlier version, which a stale cache still has after a change was undone.
func version(object client.Object, settable map[string]any) any {
	return map[string]any{"fields": settable, "generation": object.GetGeneration()}
}

// overwrite copies an object to another one of the same type.
func overwrite(object, by client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(by)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, object)
}
