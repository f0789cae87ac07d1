package webhook

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/webhook/review"
)

// searchTimeout is the deadline for looking up related objects. The API server waits longer, so that an incomplete
// answer still arrives.
const searchTimeout = 3 * time.Second

// A searcher looks up the objects related to a reviewed object. Objects that cannot be read are left out of the result.
type searcher struct {
	reader     client.Reader
	namespaces []string // all if empty
	clock      clock.PassiveClock
}

// covers reports whether the webhook looks up objects in a namespace.
func (s searcher) covers(namespace string) bool {
	return len(s.namespaces) == 0 || slices.Contains(s.namespaces, namespace)
}

// search looks up all references, and the NodeSets of a cluster unless its name is empty.
func (s searcher) search(ctx context.Context, namespace string, references []review.Reference,
	cluster string) review.Found {
	found := review.Found{Now: s.clock.Now(), Objects: map[review.Target]review.Result{}}
	if !s.covers(namespace) {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	for _, reference := range references {
		if _, known := found.Objects[reference.Target]; known {
			continue
		}
		result, err := s.find(ctx, namespace, reference)
		if err != nil {
			log.FromContext(ctx).
				Info("not looked up", "kind", reference.Kind, "name", reference.Name, "error", err.Error())
			continue
		}
		found.Objects[reference.Target] = result
	}
	if cluster == "" {
		return found
	}
	sets := &slinkyv1beta1.NodeSetList{}
	if err := s.reader.List(ctx, sets, client.InNamespace(namespace)); err != nil {
		log.FromContext(ctx).Info("not looked up", "kind", "NodeSet", "error", err.Error())
	}
	found.NodeSets = slices.DeleteFunc(sets.Items, func(set slinkyv1beta1.NodeSet) bool {
		return set.Spec.ControllerRef.Name != cluster || set.DeletionTimestamp != nil
	})
	return found
}

// policies looks up the Controllers of a namespace that have a policy for Tokens.
func (s searcher) policies(ctx context.Context, namespace string) []review.Policy {
	if !s.covers(namespace) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	controllers := &slinkyv1beta1.ControllerList{}
	if err := s.reader.List(ctx, controllers, client.InNamespace(namespace)); err != nil {
		log.FromContext(ctx).Info("not looked up", "kind", "Controller", "error", err.Error())
	}
	var policies []review.Policy
	for i := range controllers.Items {
		policy := review.Policy{Controller: &controllers.Items[i]}
		if policy.Controller.Spec.TokenPolicy == nil {
			continue
		}
		if accounting := policy.Controller.Spec.AccountingRef; accounting != nil {
			policy.Accounting = &slinkyv1beta1.Accounting{ObjectMeta: metav1.ObjectMeta{Name: accounting.Name}}
			name := client.ObjectKey{Namespace: namespace, Name: accounting.Name}
			if err := s.reader.Get(ctx, name, policy.Accounting); client.IgnoreNotFound(err) != nil {
				log.FromContext(ctx).
					Info("not looked up", "kind", "Accounting", "name", accounting.Name, "error", err.Error())
			}
		}
		policies = append(policies, policy)
	}
	return policies
}

// find looks up one reference.
func (s searcher) find(ctx context.Context, namespace string, reference review.Reference) (review.Result, error) {
	object := newObject(reference.Kind)
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, object)
	if !apierrors.IsNotFound(err) {
		return review.Result{Object: object}, err
	}
	if reference.Until == "" {
		return review.Result{}, nil
	}
	return review.Result{
		Kind: s.otherKind(ctx, namespace, reference), InOtherNamespace: s.inOtherNamespace(ctx, reference),
	}, nil
}

// newObject returns an object to read into: only the metadata if a review needs no more.
func newObject(kind string) client.Object {
	switch kind {
	case review.ControllerKind:
		return &slinkyv1beta1.Controller{}
	case review.AccountingKind:
		return &slinkyv1beta1.Accounting{}
	case review.ConfigMapKind:
		return &corev1.ConfigMap{}
	case review.ClaimKind:
		return &corev1.PersistentVolumeClaim{}
	default:
		return partial(corev1.SchemeGroupVersion.WithKind(kind))
	}
}

// partial returns an object of a kind with only its metadata.
func partial(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// otherKind returns the kind that the user may have meant, if an object of that kind has the name; empty otherwise.
func (s searcher) otherKind(ctx context.Context, namespace string, reference review.Reference) string {
	other, ok := review.MistakenFor[reference.Kind]
	if !ok || s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, newObject(other)) != nil {
		return ""
	}
	return other
}

// inOtherNamespace reports whether a Controller or Accounting with the name exists in another namespace. It does not
// reveal which one, because the user may not have access to it.
func (s searcher) inOtherNamespace(ctx context.Context, reference review.Reference) bool {
	if reference.Kind != review.ControllerKind && reference.Kind != review.AccountingKind {
		return false
	}
	namespaces := s.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(slinkyv1beta1.SchemeGroupVersion.WithKind(reference.Kind + "List"))
		err := s.reader.List(ctx, list, client.InNamespace(namespace),
			client.MatchingFields{metav1.ObjectNameField: reference.Name}, client.Limit(1))
		if err == nil && len(list.Items) > 0 {
			return true
		}
	}
	return false
}
