// Package plugintest serves Kubernetes objects from memory to tests of the plugin, counts the requests for them, and
// refuses those that a test forbids.
package plugintest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// User is the name of the user.
const User = "alice@example.org"

// A Server is an API server with a few objects, which it serves by get and list, and creates and deletes.
type Server struct {
	URL string
	// Kubelet is called for each pod that is created, and may change its status; it may be nil.
	Kubelet func(pod *unstructured.Unstructured)

	mu        sync.Mutex
	objects   map[schema.GroupVersionResource][]runtime.Object
	forbidden []string
	requests  []string
}

// NewServer starts a server without objects.
func NewServer(tb testing.TB) *Server {
	tb.Helper()
	server := &Server{objects: map[schema.GroupVersionResource][]runtime.Object{}}
	listener := httptest.NewServer(server)
	tb.Cleanup(listener.Close)
	server.URL = listener.URL
	return server
}

// Add adds objects of a resource.
func (s *Server) Add(resource schema.GroupVersionResource, objects ...runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[resource] = append(s.objects[resource], objects...)
}

// Forbid refuses all requests for resources, such as pods.
func (s *Server) Forbid(resources ...string) { s.forbidden = append(s.forbidden, resources...) }

// ForbidVerb refuses requests with a method, such as POST.
func (s *Server) ForbidVerb(method string) { s.forbidden = append(s.forbidden, method) }

// Requests returns the requests so far, such as "GET /api/v1/namespaces/slurm/pods".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request.Method+" "+request.URL.Path)
	resource, namespace, name := parse(request.URL.Path)
	selector, err := labels.Parse(request.URL.Query().Get("labelSelector"))
	switch {
	case err != nil:
		fail(response, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	case slices.Contains(s.forbidden, resource.Resource), slices.Contains(s.forbidden, request.Method):
		fail(response, http.StatusForbidden, metav1.StatusReasonForbidden, resource.Resource+" is forbidden")
	case resource.Resource == "selfsubjectreviews":
		send(response, http.StatusCreated, map[string]any{
			"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
			"status": map[string]any{"userInfo": map[string]any{"username": User}},
		})
	case request.Method == http.MethodPatch && request.URL.Query().Get("dryRun") == metav1.DryRunAll:
		var applied map[string]any
		if err := json.NewDecoder(request.Body).Decode(&applied); err != nil {
			fail(response, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
		send(response, http.StatusOK, applied)
	case request.Method == http.MethodPost && name == "":
		s.create(response, resource, request.Body)
	case request.Method == http.MethodDelete:
		s.delete(response, resource, namespace, name)
	case name == "":
		s.list(response, resource, namespace, selector,
			strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadataList"),
			request.URL.Query().Get("fieldSelector") == "spec.unschedulable=true")
	default:
		s.get(response, resource, namespace, name)
	}
}

// parse splits a path such as /apis/slinky.slurm.net/v1beta1/namespaces/slurm/nodesets/gpu.
func parse(path string) (resource schema.GroupVersionResource, namespace, name string) {
	words := strings.Split(strings.Trim(path, "/"), "/")
	if words[0] == "apis" {
		resource.Group = words[1]
		words = words[1:]
	}
	resource.Version, words = words[1], words[2:]
	if len(words) > 2 && words[0] == "namespaces" {
		namespace, words = words[1], words[2:]
	}
	resource.Resource = words[0]
	if len(words) > 1 {
		name = words[1]
	}
	return resource, namespace, name
}

func (s *Server) list(
	response http.ResponseWriter, resource schema.GroupVersionResource, namespace string, selector labels.Selector,
	metadata, cordoned bool,
) {
	items := []runtime.Object{}
	for _, object := range s.objects[resource] {
		about := accessor(object)
		if cordoned && !unschedulable(object) {
			continue
		}
		if (namespace == "" || about.GetNamespace() == namespace) && selector.Matches(labels.Set(about.GetLabels())) {
			items = append(items, object)
		}
	}
	version, kind := resource.GroupVersion().String(), listKind(resource)
	if metadata {
		version, kind = metav1.SchemeGroupVersion.String(), "PartialObjectMetadataList"
	}
	send(response, http.StatusOK, map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{}, "items": items,
	})
}

// unschedulable reports whether an object is a cordoned Kubernetes node.
func unschedulable(object runtime.Object) bool {
	node, isNode := object.(*unstructured.Unstructured)
	if !isNode {
		return false
	}
	cordoned, _, _ := unstructured.NestedBool(node.Object, "spec", "unschedulable")
	return cordoned
}

func (s *Server) get(response http.ResponseWriter, resource schema.GroupVersionResource, namespace, name string) {
	for _, object := range s.objects[resource] {
		if about := accessor(object); about.GetNamespace() == namespace && about.GetName() == name {
			send(response, http.StatusOK, object)
			return
		}
	}
	fail(response, http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("%s %q not found", resource.Resource, name))
}

func (s *Server) create(response http.ResponseWriter, resource schema.GroupVersionResource, body io.Reader) {
	object := &unstructured.Unstructured{}
	if err := json.NewDecoder(body).Decode(&object.Object); err != nil {
		fail(response, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	object.SetUID("created")
	if object.GetKind() == "Pod" && s.Kubelet != nil {
		s.Kubelet(object)
	}
	s.objects[resource] = append(s.objects[resource], object)
	send(response, http.StatusCreated, object)
}

func (s *Server) delete(response http.ResponseWriter, resource schema.GroupVersionResource, namespace, name string) {
	for i, object := range s.objects[resource] {
		if about := accessor(object); about.GetNamespace() == namespace && about.GetName() == name {
			s.objects[resource] = slices.Delete(s.objects[resource], i, i+1)
			send(response, http.StatusOK, object)
			return
		}
	}
	fail(response, http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("%s %q not found", resource.Resource, name))
}

func accessor(object runtime.Object) metav1.Object {
	about, err := meta.Accessor(object)
	if err != nil {
		panic(err) // unreachable: objects have metadata
	}
	return about
}

func fail(response http.ResponseWriter, code int32, reason metav1.StatusReason, message string) {
	send(response, int(code), metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code,
		Reason: reason, Message: message,
	})
}

func send(response http.ResponseWriter, code int, body any) {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err) // unreachable: API types always encode
	}
	response.Header().Set("Content-Type", "application/json")
	response.WriteHeader(code)
	_, _ = response.Write(encoded) // the client notices a truncated answer
}
