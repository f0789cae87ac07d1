package child

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// A TakeOverError says that a workload of another operator is in the way of this operator's own.
type TakeOverError struct {
	Kind, Name string
	// Allowed is true if it is being deleted without its pods, which the new workload adopts. Otherwise it is left alone.
	Allowed bool
}

// Error describes what happens to the workload.
func (e *TakeOverError) Error() string {
	if e.Allowed {
		return fmt.Sprintf("%s %s of another operator is being deleted without its pods, which are replaced afterwards",
			e.Kind, e.Name)
	}
	return fmt.Sprintf("another operator made %s %s, and nothing is changed until the cluster is taken over: see the "+
		"conditions of the Controller, and its annotation %s", e.Kind, e.Name, slinkyv1beta1.AnnotationTakeOver)
}

// TakeOver makes way for a workload: one of the same name that another operator made is deleted without its pods, if
// that is allowed. It returns a TakeOverError until the name is free.
func (a *Applier) TakeOver(ctx context.Context, owner, workload client.Object, allowed bool) error {
	kind, err := a.client.GroupVersionKindFor(workload)
	if err != nil {
		return err
	}
	name := client.ObjectKeyFromObject(workload)
	switch err := a.client.Get(ctx, name, workload); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading %s %s: %w", kind.Kind, name.Name, err)
	}
	if podtemplate.IsOwn(templateAnnotations(workload)) || !metav1.IsControlledBy(workload, owner) {
		return nil // Apply returns an error about one that somebody else owns
	}
	if allowed && workload.GetDeletionTimestamp() == nil {
		ctx = trace.Because(ctx, "TakeOver", "the user asked for the takeover of this cluster")
		if err := a.Release(ctx, owner, workload); err != nil {
			return err
		}
	}
	return &TakeOverError{Kind: kind.Kind, Name: name.Name, Allowed: allowed}
}

// templateAnnotations returns the annotations of a workload's pod template.
func templateAnnotations(workload client.Object) map[string]string {
	switch typed := workload.(type) {
	case *appsv1.StatefulSet:
		return typed.Spec.Template.Annotations
	case *appsv1.Deployment:
		return typed.Spec.Template.Annotations
	}
	return nil
}

// Release deletes a workload that another operator made, without its pods: a workload of the same name and selector
// adopts them.
func (a *Applier) Release(ctx context.Context, owner, object client.Object) error {
	kind, err := a.client.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(object, owner) {
		return a.foreign(owner, kind.Kind, object.GetName())
	}
	uid := object.GetUID()
	err = a.client.Delete(ctx, object, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationOrphan))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s without its pods: %w", kind.Kind, object.GetName(), err)
	}
	return nil
}
