package kube

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// Workers lists the slurmd pods of a Controller, or of all if it is empty.
func (c *Client) Workers(ctx context.Context, namespace, controller string) ([]corev1.Pod, error) {
	selector := naming.DaemonSelector(naming.Slurmd)
	if controller != "" {
		selector = naming.WorkerSelector(controller)
	}
	var pods corev1.PodList
	err := c.List(ctx, Pods, namespace, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(selector).String(),
	}, &pods)
	return pods.Items, err
}

// SlurmNode returns the name of a slurmd pod's Slurm node.
func SlurmNode(pod *corev1.Pod) string {
	return cmp.Or(pod.Labels[slinkyv1beta1.LabelPodHostname], pod.Spec.Hostname)
}

// IsReady reports whether a pod is ready.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// Names lists the names of objects. The API server sends only their metadata.
func (c *Client) Names(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]string, error) {
	var list metav1.PartialObjectMetadataList
	err := c.clients[resource.GroupVersion()].Get().NamespaceIfScoped(namespace, namespace != "").
		Resource(resource.Resource).SetHeader("Accept", metadataOnly).Do(ctx).Into(&list)
	if err != nil {
		return nil, denied(err, "list", resource.GroupResource(), namespace)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}

// metadataOnly asks for a list without specs and statuses.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
