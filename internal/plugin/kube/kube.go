// Package kube is the plugin's access to Kubernetes, with the rights of the user who runs it.
//
// It uses client-go's REST client with the few types that commands need, and not the clientset: the clientset registers
// every API group, which would double the size of the program. A request that the user has no right to is returned as
// a *Forbidden, so that a command can name the missing right and show the rest.
package kube

import (
	"context"
	"fmt"
	"io"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// The resources that commands use. Add a group to newScheme to use more.
var (
	Controllers = slinkyv1beta1.SchemeGroupVersion.WithResource("controllers")
	NodeSets    = slinkyv1beta1.SchemeGroupVersion.WithResource("nodesets")
	LoginSets   = slinkyv1beta1.SchemeGroupVersion.WithResource("loginsets")
	RestAPIs    = slinkyv1beta1.SchemeGroupVersion.WithResource("restapis")
	Accountings = slinkyv1beta1.SchemeGroupVersion.WithResource("accountings")
	Tokens      = slinkyv1beta1.SchemeGroupVersion.WithResource("tokens")
	Pods        = corev1.SchemeGroupVersion.WithResource("pods")
	Nodes       = corev1.SchemeGroupVersion.WithResource("nodes")
	ConfigMaps  = corev1.SchemeGroupVersion.WithResource("configmaps")
	Events      = eventsv1.SchemeGroupVersion.WithResource("events")

	selfSubjectReviews = authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews")
)

// newScheme returns the types that the client decodes.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		slinkyv1beta1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme, authenticationv1.AddToScheme,
		metav1.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // unreachable: the types are compiled in
		}
	}
	return scheme
}

// A Client sends requests to the API server.
type Client struct {
	config     *rest.Config
	scheme     *runtime.Scheme
	parameters runtime.ParameterCodec
	clients    map[schema.GroupVersion]rest.Interface
}

// New returns a client. It sends nothing: there is no discovery.
func New(config *rest.Config) (*Client, error) {
	scheme := newScheme()
	client := &Client{
		config: config, scheme: scheme, parameters: runtime.NewParameterCodec(scheme),
		clients: map[schema.GroupVersion]rest.Interface{},
	}
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	for _, version := range []schema.GroupVersion{
		slinkyv1beta1.SchemeGroupVersion, corev1.SchemeGroupVersion, eventsv1.SchemeGroupVersion,
		authenticationv1.SchemeGroupVersion,
	} {
		own := rest.CopyConfig(config)
		own.GroupVersion, own.NegotiatedSerializer, own.QPS = &version, codecs, -1
		own.APIPath = "/apis"
		if version.Group == "" {
			own.APIPath = "/api"
		}
		if version.Group != slinkyv1beta1.GroupName { // custom resources have no protobuf encoding
			own.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
			own.ContentType = runtime.ContentTypeJSON
		}
		if client.clients[version], err = rest.RESTClientForConfigAndClient(own, shared); err != nil {
			return nil, fmt.Errorf("connecting to the API server: %w", err)
		}
	}
	return client, nil
}

// Get reads an object.
func (c *Client) Get(
	ctx context.Context, resource schema.GroupVersionResource, namespace, name string, into runtime.Object,
) error {
	err := c.clients[resource.GroupVersion()].Get().NamespaceIfScoped(namespace, namespace != "").
		Resource(resource.Resource).Name(name).Do(ctx).Into(into)
	return denied(err, "get", resource.GroupResource(), namespace)
}

// List reads the objects of a namespace, or of all namespaces if it is empty.
func (c *Client) List(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions,
	into runtime.Object,
) error {
	err := c.clients[resource.GroupVersion()].Get().NamespaceIfScoped(namespace, namespace != "").
		Resource(resource.Resource).VersionedParams(&options, c.parameters).Do(ctx).Into(into)
	return denied(err, "list", resource.GroupResource(), namespace)
}

// Patch changes an object with a merge patch.
func (c *Client) Patch(
	ctx context.Context, resource schema.GroupVersionResource, namespace, name string, patch []byte,
) error {
	err := c.clients[resource.GroupVersion()].Patch(types.MergePatchType).
		NamespaceIfScoped(namespace, namespace != "").Resource(resource.Resource).Name(name).Body(patch).Do(ctx).Error()
	return denied(err, "patch", resource.GroupResource(), namespace)
}

// An Object is one of Kubernetes.
type Object interface {
	runtime.Object
	metav1.Object
}

// Create creates an object in its namespace. Afterwards, the object is as the API server made it.
func (c *Client) Create(ctx context.Context, resource schema.GroupVersionResource, object Object) error {
	err := c.clients[resource.GroupVersion()].Post().Namespace(object.GetNamespace()).Resource(resource.Resource).
		Body(object).Do(ctx).Into(object)
	return denied(err, "create", resource.GroupResource(), object.GetNamespace())
}

// Delete deletes an object.
func (c *Client) Delete(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) error {
	err := c.clients[resource.GroupVersion()].Delete().NamespaceIfScoped(namespace, namespace != "").
		Resource(resource.Resource).Name(name).Do(ctx).Error()
	return denied(err, "delete", resource.GroupResource(), namespace)
}

// Logs returns the log of a pod's container. The caller closes it.
func (c *Client) Logs(
	ctx context.Context, namespace, pod string, options *corev1.PodLogOptions,
) (io.ReadCloser, error) {
	log, err := c.clients[corev1.SchemeGroupVersion].Get().Namespace(namespace).Resource(Pods.Resource).Name(pod).
		SubResource("log").VersionedParams(options, c.parameters).Stream(ctx)
	return log, denied(err, "get", subresource(Pods, "log"), namespace)
}

// User returns the name by which the API server knows the user.
func (c *Client) User(ctx context.Context) (string, error) {
	var review authenticationv1.SelfSubjectReview
	err := c.clients[authenticationv1.SchemeGroupVersion].Post().Resource(selfSubjectReviews.Resource).
		Body(&authenticationv1.SelfSubjectReview{}).Do(ctx).Into(&review)
	return review.Status.UserInfo.Username, denied(err, "create", selfSubjectReviews.GroupResource(), "")
}

func subresource(resource schema.GroupVersionResource, name string) schema.GroupResource {
	return schema.GroupResource{Group: resource.Group, Resource: resource.Resource + "/" + name}
}
