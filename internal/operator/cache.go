package operator

import (
	"context"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/process"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// The operator watches all Pods, Secrets and ConfigMaps of its namespaces: specs reference Secrets and ConfigMaps with
// any name and labels, and a NodeSet owns its pods even if their labels were removed. Of objects that are not the
// operator's own, the cache keeps only the metadata that shows a change. The contents of the few referenced objects are
// read when they are needed, once per version.

// CacheOptions returns cache options that keep unneeded data out of memory.
func CacheOptions(settings process.Settings) cache.Options {
	options := settings.Cache()
	strip := stripForeign(options.DefaultTransform)
	options.ByObject = map[client.Object]cache.ByObject{
		// Helm stores whole releases in Secrets.
		&corev1.Secret{}:    {Field: fields.OneTermNotEqualSelector("type", "helm.sh/release.v1"), Transform: strip},
		&corev1.ConfigMap{}: {Transform: strip},
		&corev1.Pod{}:       {Transform: shareSpecs(strip)},
	}
	return options
}

// annotationStripped marks an object whose contents were removed, only in the cache.
const annotationStripped = slinkyv1beta1.GroupName + "/contents-not-cached"

// stripForeign removes the contents of objects that are not the operator's own.
func stripForeign(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if known, ok := object.(client.Object); ok && !isOwn(known) {
			switch typed := object.(type) {
			case *corev1.Secret:
				return &corev1.Secret{ObjectMeta: stripped(typed)}, nil
			case *corev1.ConfigMap:
				return &corev1.ConfigMap{ObjectMeta: stripped(typed)}, nil
			case *corev1.Pod:
				return &corev1.Pod{ObjectMeta: stripped(typed)}, nil
			}
		}
		return next(object)
	}
}

// stripped returns the metadata that the cache keeps of an object that is not the operator's own.
func stripped(object client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		ResourceVersion:   object.GetResourceVersion(),
		DeletionTimestamp: object.GetDeletionTimestamp(), Annotations: strippedAnnotations,
	}
}

// strippedAnnotations is shared by all stripped objects.
var strippedAnnotations = map[string]string{annotationStripped: "true"}

// isOwn reports whether an object is, or may be, one that the operator creates or adopts, by its labels or its owner.
func isOwn(object client.Object) bool {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		if group, err := schema.ParseGroupVersion(owner.APIVersion); err == nil &&
			group.Group == slinkyv1beta1.GroupName {
			return true
		}
	}
	return naming.IsManaged(object.GetLabels())
}

// A referenceReader reads the contents of objects that are stripped in the cache.
type referenceReader struct {
	client.Client
	live client.Reader

	mu sync.Mutex
	// read holds contents in the order of their last use.
	read []contents
}

// contents are those of one version of an object.
type contents struct {
	kind    reflect.Type
	name    types.NamespacedName
	version string
	object  client.Object
}

// maxContents is the maximum number of objects whose contents are kept. Further referenced objects only cost more
// requests.
const maxContents = 1000

// newClient returns the manager's client. It reads from the cache, reads stripped contents from the API server, and
// logs its changes.
func newClient(config *rest.Config, options client.Options) (client.Client, error) {
	cached, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	options.Cache = nil
	live, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	return trace.Kubernetes(&referenceReader{Client: cached, live: live}), nil
}

// Get reads an object, with its contents.
func (r *referenceReader) Get(ctx context.Context, name client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	err := r.Client.Get(ctx, name, object, options...)
	if apierrors.IsNotFound(err) {
		r.forget(reflect.TypeOf(object), name)
	}
	if err != nil || object.GetAnnotations()[annotationStripped] == "" {
		return err
	}
	wanted := contents{reflect.TypeOf(object), name, string(object.GetUID()) + "/" + object.GetResourceVersion(), nil}
	if r.recall(wanted, object) {
		return nil
	}
	if err := r.live.Get(ctx, name, object); err != nil {
		return err
	}
	wanted.object = object.DeepCopyObject().(client.Object)
	r.remember(wanted)
	return nil
}

// recall fills an object with contents of the wanted version, if they are kept.
func (r *referenceReader) recall(wanted contents, object client.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.read, func(known contents) bool {
		return known.kind == wanted.kind && known.name == wanted.name && known.version == wanted.version
	})
	if at < 0 {
		return false
	}
	known := r.read[at]
	r.read = append(slices.Delete(r.read, at, at+1), known)
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(known.object.DeepCopyObject()).Elem())
	return true
}

// remember keeps contents and replaces those of other versions.
func (r *referenceReader) remember(read contents) {
	r.forget(read.kind, read.name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.read) >= maxContents {
		r.read = slices.Delete(r.read, 0, 1)
	}
	r.read = append(r.read, read)
}

// forget drops the contents of an object.
func (r *referenceReader) forget(kind reflect.Type, name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = slices.DeleteFunc(r.read, func(known contents) bool { return known.kind == kind && known.name == name })
}
