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

// The operator watches Pods, Secrets and ConfigMaps of whole namespaces, or of all: specs refer to Secrets and ConfigMaps of any name and
// without labels, and a pod belongs to a NodeSet by its owner also when somebody has removed its labels. Of those that are not the operator's
// own, the cache keeps no more than what tells that they changed. The contents of the few that specs refer to are read when they are needed,
// once for each version.

// CacheOptions keep out of memory what is not needed.
func CacheOptions(settings process.Settings) cache.Options {
	options := settings.Cache()
	strip := stripForeign(options.DefaultTransform)
	options.ByObject = map[client.Object]cache.ByObject{
		// Helm keeps whole releases in Secrets.
		&corev1.Secret{}:    {Field: fields.OneTermNotEqualSelector("type", "helm.sh/release.v1"), Transform: strip},
		&corev1.ConfigMap{}: {Transform: strip},
		&corev1.Pod{}:       {Transform: strip},
	}
	return options
}

// annotationStripped marks, in the cache only, an object whose contents were left out.
const annotationStripped = slinkyv1beta1.GroupName + "/contents-not-cached"

// stripForeign leaves out what is in objects that are not the operator's own.
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

// stripped is what the cache keeps of an object that is not the operator's own.
func stripped(object client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		DeletionTimestamp: object.GetDeletionTimestamp(), Annotations: strippedAnnotations,
	}
}

// strippedAnnotations is shared by all of them.
var strippedAnnotations = map[string]string{annotationStripped: "true"}

// isOwn reports whether an object is, or may be, one that the operator makes or takes over: by its labels, or by its owner.
func isOwn(object client.Object) bool {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		if group, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && group.Group == slinkyv1beta1.GroupName {
			return true
		}
	}
	return naming.IsManaged(object.GetLabels())
}

// A referenceReader reads the contents of objects that the cache keeps without them.
type referenceReader struct {
	client.Client
	live client.Reader

	mu sync.Mutex
	// read are contents by what they are of, in the order in which they were last used.
	read []contents
}

// contents are of one version of an object.
type contents struct {
	kind    reflect.Type
	name    types.NamespacedName
	version string
	object  client.Object
}

// maxContents bounds how many objects the operator keeps the contents of. More referenced objects than that only cost more requests.
const maxContents = 1000

// newClient makes the manager's client: one that reads from the cache, and live what the cache leaves out, and logs what it changes.
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
func (r *referenceReader) Get(ctx context.Context, name client.ObjectKey, object client.Object, options ...client.GetOption) error {
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

// recall fills an object with contents of the wanted version, if they were read before.
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

// remember keeps contents in place of those of another version.
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
