//go:build integration

package operator_test

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// anonymous returns an object as YAML, without the fields that differ between runs.
func (w *world) anonymous(t *testing.T, live *unstructured.Unstructured) string {
	t.Helper()
	metadata, _ := live.Object["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences"} {
		delete(metadata, field)
	}
	delete(live.Object, "status")
	text, err := yaml.Marshal(live.Object)
	if err != nil {
		t.Fatal(err)
	}
	anonymous := strings.ReplaceAll(string(text), w.namespace, "NAMESPACE")
	for pattern, by := range map[string]string{
		`(/configuration-hash: |/config-hash: |config_hash=|jwt_key_digest=|/slurm-key-digest: )"?\w+"?`: "${1}DIGEST",
		`(- |clusterIP: )10\.96\.\d+\.\d+`: "${1}10.96.0.1",
	} {
		anonymous = regexp.MustCompile(pattern).ReplaceAllString(anonymous, by)
	}
	return anonymous
}

// object returns an object of any kind with only its name set.
func object(name string, kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetName(name)
	return object
}
