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

// searchTimeout is how long looking around may take. The API server waits longer than that, so an answer that could not be
// completed still arrives.
const searchTimeout = 3 * time.Second

// A searcher looks up what is around an object. What cannot be looked up is not in what it finds.
type searcher struct {
	reader     client.Reader
	namespaces []string // all when empty
	clock      clock.PassiveClock
}

// sees tells whether anything may be looked up in a namespace.
func (s searcher) sees(namespace string) bool {
	return len(s.namespaces) == 0 || slices.Contains(s.namespaces, namespace)
}

// search looks up all references, and the NodeSets of a cluster unless that is empty.
func (s searcher) search(ctx context.Context, namespace string, references []review.Reference, cluster string) review.Found {
	found := review.Found{Now: s.clock.Now(), Objects: map[review.Target]review.Result{}}
	if !s.sees(namespace) {
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
			log.FromContext(ctx).Info("not looked up", "kind", reference.Kind, "name", reference.Name, "error", err.Error())
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
	return review.Result{Kind: s.otherKind(ctx, namespace, reference), Elsewhere: s.elsewhere(ctx, reference)}, nil
}

// newObject is what an object of a kind is read into: no more of it than a review looks at.
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

// partial is the metadata of an object.
func partial(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// otherKind is the kind that was mistaken for the right one; empty when that is not so, or not known.
func (s searcher) otherKind(ctx context.Context, namespace string, reference review.Reference) string {
	other, ok := review.MistakenFor[reference.Kind]
	if !ok || s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, newObject(other)) != nil {
		return ""
	}
	return other
}

// elsewhere tells whether another namespace is known to have an object of ours of the name. Which one that is, is not for
// everybody to know.
func (s searcher) elsewhere(ctx context.Context, reference review.Reference) bool {
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
		err := s.reader.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{metav1.ObjectNameField: reference.Name}, client.Limit(1))
		if err == nil && len(list.Items) > 0 {
			return true
		}
	}
	return false
}
