package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/slurm-operator/slurm-operator/internal/webhook/review"
)

// A validator validates objects of one resource type. It looks up the related objects and calls the reviewer.
type validator[T client.Object] struct {
	kind   schema.GroupKind
	review review.Reviewer[T]
	search searcher
}

// validate registers the validating webhook for a resource type.
func validate[T client.Object](manager ctrl.Manager, object T, kind review.Reviewer[T], search searcher) error {
	gvk, err := apiutil.GVKForObject(object, manager.GetScheme())
	if err != nil {
		return err
	}
	err = ctrl.NewWebhookManagedBy(manager, object).WithValidator(&validator[T]{gvk.GroupKind(), kind, search}).
		RecoverPanic(recoverPanics).Complete()
	if err != nil {
		return fmt.Errorf("serving reviews of %s: %w", gvk.Kind, err)
	}
	return nil
}

// ValidateCreate reviews a new object.
func (v *validator[T]) ValidateCreate(ctx context.Context, object T) (admission.Warnings, error) {
	return v.answer(object, v.review.Create(object, v.found(ctx, object, v.review.References(object))))
}

// ValidateUpdate reviews a changed object. An object that is being deleted is not reviewed, because its finalizers must
// be removable.
func (v *validator[T]) ValidateUpdate(ctx context.Context, before, after T) (admission.Warnings, error) {
	if after.GetDeletionTimestamp() != nil || equality.Semantic.DeepEqual(v.review.Spec(before), v.review.Spec(after)) {
		return nil, nil
	}
	references := append(v.review.References(after), v.review.References(before)...)
	return v.answer(after, v.review.Update(before, after, v.found(ctx, after, references)))
}

// ValidateDelete does nothing: the API server does not call the webhook for deletions.
func (v *validator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) {
	return nil, nil
}

// found looks up the objects related to an object.
func (v *validator[T]) found(ctx context.Context, object T, references []review.Reference) review.Found {
	cluster := ""
	if v.review.Cluster != nil {
		cluster = v.review.Cluster(object)
	}
	found := v.search.search(ctx, object.GetNamespace(), references, cluster)
	if v.review.Policies {
		found.Policies = v.search.policies(ctx, object.GetNamespace())
	}
	return found
}

// answer converts a review to the API server's types.
func (v *validator[T]) answer(object T, result review.Review) (admission.Warnings, error) {
	var warnings admission.Warnings
	for _, warning := range result.Warnings {
		warnings = append(warnings, warning.String())
	}
	if len(result.Refusals) == 0 {
		return warnings, nil
	}
	var refusals field.ErrorList
	for _, refusal := range result.Refusals {
		var value any = refusal.Value
		if refusal.Value == "" {
			value = field.OmitValueType{}
		}
		refusals = append(refusals, field.Invalid(field.NewPath(refusal.Field), value, refusal.Message))
	}
	return warnings, apierrors.NewInvalid(v.kind, object.GetName(), refusals)
}
