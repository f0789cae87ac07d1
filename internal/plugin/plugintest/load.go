package plugintest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
)

// resources are those of the kinds that files contain.
var resources = map[string]schema.GroupVersionResource{
	"Controller": kube.Controllers, "NodeSet": kube.NodeSets, "LoginSet": kube.LoginSets, "RestApi": kube.RestAPIs,
	"Accounting": kube.Accountings, "Token": kube.Tokens, "Pod": kube.Pods, "Node": kube.Nodes, "Event": kube.Events,
	"ConfigMap": kube.ConfigMaps, "PodMetrics": kube.PodMetrics,
}

// listKind returns the kind of a resource's lists.
func listKind(resource schema.GroupVersionResource) string {
	for kind, known := range resources {
		if known == resource {
			return kind + "List"
		}
	}
	return "List"
}

// Load adds the objects of a YAML file, as kubectl get --output=yaml prints them.
func (s *Server) Load(tb testing.TB, path string) {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		resource, known := resources[object.GetKind()]
		switch {
		case err != nil:
			tb.Fatalf("%s: %v", path, err)
		case len(object.Object) == 0:
		case !known:
			tb.Fatalf("%s: unknown kind %q", path, object.GetKind())
		default:
			s.Add(resource, object)
		}
	}
}
