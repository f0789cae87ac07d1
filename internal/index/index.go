// Package index defines the references between objects: every field index, with the watch handlers that use it.
//
// A change of a referenced object must reach the objects that refer to it. Each Index is a field index over the
// referring type, and provides the handler for a watch on the referenced type.
package index

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// An Index finds the objects of one type by the names of the objects it refers to, in the same namespace.
type Index struct {
	field string
	kind  client.Object
	list  func() client.ObjectList
	names func(client.Object) []string
}

// reference returns an Index that extracts the names from an object of the type with a function.
func reference[O client.Object, L any, P interface {
	*L
	client.ObjectList
}](field string, kind O, _ P, names func(O) []string) Index {
	list := func() client.ObjectList { return P(new(L)) }
	return Index{field: "references." + field, kind: kind, list: list, names: func(object client.Object) []string {
		typed, ok := object.(O)
		if !ok {
			return nil
		}
		found := slices.DeleteFunc(names(typed), func(name string) bool { return name == "" })
		slices.Sort(found)
		return slices.Compact(found)
	}}
}

// Add adds all indexes to a cache.
func Add(ctx context.Context, indexer client.FieldIndexer) error {
	for _, reference := range all {
		if err := indexer.IndexField(ctx, reference.kind, reference.field, reference.names); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", reference.kind, reference.field, err)
		}
	}
	return nil
}

// List fills a list of the referring type with the objects that refer to a name.
func (r Index) List(ctx context.Context, reader client.Reader, referenced types.NamespacedName,
	list client.ObjectList, options ...client.ListOption) error {
	options = append(options, client.InNamespace(referenced.Namespace), client.MatchingFields{r.field: referenced.Name})
	return reader.List(ctx, list, options...)
}

// Requests returns requests for the objects that refer to a name.
func (r Index) Requests(ctx context.Context, reader client.Reader,
	referenced types.NamespacedName) ([]reconcile.Request, error) {
	list := r.list()
	if err := r.List(ctx, reader, referenced, list); err != nil {
		return nil, err
	}
	var requests []reconcile.Request
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
		return nil
	})
	return requests, err
}

// Handler enqueues the objects that refer to the changed object, directly or through others: the first reference starts
// at the changed object, each next one at the objects found so far.
func Handler(reader client.Reader, chain ...Index) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		return follow(ctx, reader, client.ObjectKeyFromObject(object), chain)
	})
}

// Referenced enqueues the objects that the changed object refers to.
func (r Index) Referenced() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(
		func(_ context.Context, object client.Object) []reconcile.Request { return r.Names(object) })
}

// Names returns requests for the objects that an object refers to.
func (r Index) Names(object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range r.names(object) {
		requests = append(requests, reconcile.Request{
			NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name},
		})
	}
	return requests
}

// OwnerHandler enqueues the objects that refer to the owner of the changed object, if the owner has a given kind.
func OwnerHandler(reader client.Reader, kind string, chain ...Index) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		owner := metav1.GetControllerOf(object)
		if owner == nil || owner.Kind != kind {
			return nil
		}
		return follow(ctx, reader, types.NamespacedName{Namespace: object.GetNamespace(), Name: owner.Name}, chain)
	})
}

// follow returns requests for the objects at the end of a chain of references that starts at a name.
func follow(ctx context.Context, reader client.Reader, name types.NamespacedName,
	chain []Index) []reconcile.Request {
	found := []reconcile.Request{{NamespacedName: name}}
	for _, reference := range chain {
		var next []reconcile.Request
		for _, request := range found {
			requests, err := reference.Requests(ctx, reader, request.NamespacedName)
			if err != nil {
				// The cache does not fail, so this is a missing index: a bug that every test shows.
				panic(err)
			}
			next = append(next, requests...)
		}
		found = next
	}
	return found
}

// Pods enqueues the custom resource of a daemon's pod, whichever workload created the pod.
func Pods(daemon naming.Daemon) handler.EventHandler { return PodHandler(nil, daemon) }

// PodHandler enqueues the objects at the end of a chain of references that starts at the custom resource of a daemon's
// pod.
func PodHandler(reader client.Reader, daemon naming.Daemon, chain ...Index) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		instance, found := naming.Instance(daemon, object.GetLabels())
		if !found {
			return nil
		}
		return follow(ctx, reader, types.NamespacedName{Namespace: object.GetNamespace(), Name: instance}, chain)
	})
}
