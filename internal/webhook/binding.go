package webhook

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// bindingTimeout is the maximum delay of a pod's binding to a Kubernetes node.
const bindingTimeout = time.Second

// A binder gives each slurmd pod the topology annotation of its Kubernetes node when the pod is bound: it adds the
// annotation to the Binding, and the API server copies it to the pod. A Binding does not have the pod's labels, so no
// selector can match only slurmd pods; namespaces without NodeSets are skipped.
type binder struct {
	reader client.Reader
	// nodeSets is a cache of the metadata of NodeSets.
	nodeSets client.Reader
	search   searcher
}

// bind registers the mutating webhook for Bindings.
func bind(manager ctrl.Manager, reader client.Reader, search searcher) error {
	binder := &binder{reader: reader, nodeSets: manager.GetCache(), search: search}
	if err := ctrl.NewWebhookManagedBy(manager, &corev1.Binding{}).WithDefaulter(binder).RecoverPanic(recoverPanics).
		Complete(); err != nil {
		return fmt.Errorf("serving bindings: %w", err)
	}
	return nil
}

// Default adds the annotation. It never fails, because a pod without the annotation is better than an unscheduled pod.
func (b *binder) Default(ctx context.Context, binding *corev1.Binding) error {
	ctx, cancel := context.WithTimeout(ctx, bindingTimeout)
	defer cancel()
	topology, err := b.topology(ctx, client.ObjectKeyFromObject(binding), binding.Target.Name)
	if err != nil {
		log.FromContext(ctx).
			Error(err, "looking up the topology of a pod", "pod", binding.Name, "node", binding.Target.Name)
		return nil
	}
	if topology != "" {
		metav1.SetMetaDataAnnotation(&binding.ObjectMeta, slinkyv1beta1.AnnotationTopology, topology)
	}
	return nil
}

// topology returns the annotation of the Kubernetes node, if the pod is a slurmd pod.
func (b *binder) topology(ctx context.Context, pod client.ObjectKey, node string) (string, error) {
	if !b.search.covers(pod.Namespace) {
		return "", nil
	}
	sets := &metav1.PartialObjectMetadataList{}
	sets.SetGroupVersionKind(slinkyv1beta1.SchemeGroupVersion.WithKind("NodeSetList"))
	if err := b.nodeSets.List(ctx, sets, client.InNamespace(pod.Namespace), client.Limit(1)); err != nil ||
		len(sets.Items) == 0 {
		return "", err
	}
	bound := partial(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err := b.reader.Get(ctx, pod, bound); err != nil {
		return "", err
	}
	if _, slurmd := naming.Instance(naming.Slurmd, bound.Labels); !slurmd {
		return "", nil
	}
	target := partial(corev1.SchemeGroupVersion.WithKind("Node"))
	if err := b.reader.Get(ctx, client.ObjectKey{Name: node}, target); err != nil {
		return "", err
	}
	return target.Annotations[slinkyv1beta1.AnnotationTopology], nil
}
