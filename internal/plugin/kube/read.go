package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Further resources, which are read with Read.
var (
	Services               = corev1.SchemeGroupVersion.WithResource("services")
	PersistentVolumeClaims = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	ResourceQuotas         = corev1.SchemeGroupVersion.WithResource("resourcequotas")

	Deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	Budgets     = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	Leases      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	Endpoints   = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}

	// PodMetrics are what pods use; served if the cluster has a metrics server.
	PodMetrics = schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"}

	StorageClasses = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	Webhooks       = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations",
	}
	ResourceTypes = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

// Read lists objects of any resource, as JSON into a struct with the fields that are needed. Unlike List, it needs no
// scheme, which would make the program larger by every type of an API group.
func (c *Client) Read(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions, into any,
) error {
	root := path.Join("/apis", resource.Group, resource.Version)
	if resource.Group == "" {
		root = path.Join("/api", resource.Version)
	}
	if namespace != "" {
		root = path.Join(root, "namespaces", namespace)
	}
	answer, err := c.clients[corev1.SchemeGroupVersion].Get().AbsPath(root, resource.Resource).
		SetHeader("Accept", "application/json").VersionedParams(&options, c.parameters).Do(ctx).Raw()
	if err != nil {
		return denied(err, "list", resource.GroupResource(), namespace)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("reading %s: %w", resource.Resource, err)
	}
	return nil
}
