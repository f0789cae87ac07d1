//go:build integration

package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// contract is the entry of one kind in testdata/contract.yaml.
type contract struct {
	Kind       string          `json:"kind"`
	ShortNames []string        `json:"shortNames"`
	Scale      bool            `json:"scale"`
	Minimal    map[string]any  `json:"minimal"`
	Fields     []contractField `json:"fields"`
	Additions  []contractField `json:"additions"`
	Status     []string        `json:"status"`
}

type contractField struct {
	Field   string         `json:"field"`
	Value   any            `json:"value"`
	Default any            `json:"default"`
	With    map[string]any `json:"with"`
}

func readContract(t *testing.T) []contract {
	t.Helper()
	var table []contract
	readTable(t, "contract.yaml", &table)
	return table
}

func TestEveryFieldRoundTripsWithItsDefault(t *testing.T) {
	for _, kind := range readContract(t) {
		t.Run(kind.Kind, func(t *testing.T) {
			ns := namespace(t)
			minimal := create(t, object(kind.Kind, ns, "minimal", kind.Minimal))
			for i, field := range append(kind.Fields, kind.Additions...) {
				t.Run(fmt.Sprintf("%s #%d", field.Field, i), func(t *testing.T) {
					path := strings.Split("spec."+field.Field, ".")
					if diff := cmp.Diff(field.Default, at(t, minimal, path)); diff != "" {
						t.Errorf("default (-want +got):\n%s", diff)
					}
					full := object(kind.Kind, ns, fmt.Sprintf("field-%d", i), merged(kind.Minimal, field.With))
					set(t, full, path, field.Value)
					if diff := cmp.Diff(field.Value, at(t, create(t, full), path)); diff != "" {
						t.Errorf("on the server (-want +got):\n%s", diff)
					}
					if diff := cmp.Diff(field.Value, at(t, throughGo(t, full), path)); diff != "" {
						t.Errorf("through the Go types (-want +got):\n%s", diff)
					}
				})
			}
		})
	}
}

// The table must be complete: a spec field without a row is not tested.
func TestContractCoversEveryField(t *testing.T) {
	for _, kind := range readContract(t) {
		properties := schemaOf(t, kind.Kind).Properties
		named := map[string]bool{}
		for _, field := range append(kind.Fields, kind.Additions...) {
			named[strings.Split(field.Field, ".")[0]] = true
		}
		for name := range properties["spec"].Properties {
			if !named[name] {
				t.Errorf("%s: no row for spec.%s", kind.Kind, name)
			}
		}
		want := map[string]bool{}
		for _, name := range kind.Status {
			want[name] = true
		}
		got := map[string]bool{}
		for name := range properties["status"].Properties {
			got[name] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: status fields (-want +got):\n%s", kind.Kind, diff)
		}
		for _, field := range kind.Additions {
			if !saysAddition(properties["spec"], strings.Split(field.Field, ".")) {
				t.Errorf("%s: the description of spec.%s does not say that it is an addition", kind.Kind, field.Field)
			}
		}
	}
}

// saysAddition reports whether the description of a field, or of one that contains it, says that it is an addition.
func saysAddition(schema apiextensionsv1.JSONSchemaProps, path []string) bool {
	for _, name := range path {
		schema = schema.Properties[name]
		if strings.Contains(schema.Description, "Addition.") {
			return true
		}
	}
	return false
}

func TestScaleSubresource(t *testing.T) {
	for _, kind := range readContract(t) {
		if !kind.Scale {
			continue
		}
		t.Run(kind.Kind, func(t *testing.T) {
			ns := namespace(t)
			create(t, object(kind.Kind, ns, "x", kind.Minimal))
			resource := strings.ToLower(kind.Kind) + "s.slinky.slurm.net/x"
			if out, err := kubectl(t, "scale", "-n", ns, resource, "--replicas=7"); err != nil {
				t.Fatalf("kubectl scale: %v\n%s", err, out)
			}
			out, err := kubectl(t, "get", "-n", ns, resource, "-o", "jsonpath={.spec.replicas}")
			if err != nil || out != "7" {
				t.Errorf("spec.replicas after kubectl scale = %q, %v, want 7", out, err)
			}
		})
	}
}

func create(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	created := object.DeepCopy()
	if err := strict.Create(t.Context(), created); err != nil {
		t.Fatalf("creating: %v", err)
	}
	return created
}

// throughGo reads an object with the Go types, writes it back with them, and returns the result on the server.
func throughGo(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	typed, err := scheme.Scheme.New(slinkyv1beta1.SchemeGroupVersion.WithKind(object.GetKind()))
	if err != nil {
		t.Fatal(err)
	}
	instance := typed.(client.Object)
	if err := strict.Get(t.Context(), client.ObjectKeyFromObject(object), instance); err != nil {
		t.Fatalf("reading with the Go types: %v", err)
	}
	if err := strict.Update(t.Context(), instance); err != nil {
		t.Fatalf("writing with the Go types: %v", err)
	}
	result := &unstructured.Unstructured{}
	result.SetGroupVersionKind(object.GroupVersionKind())
	if err := strict.Get(t.Context(), client.ObjectKeyFromObject(object), result); err != nil {
		t.Fatal(err)
	}
	return result
}

func schemaOf(t *testing.T, kind string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	name := strings.ToLower(kind) + "s.slinky.slurm.net"
	if err := strict.Get(t.Context(), client.ObjectKey{Name: name}, definition); err != nil {
		t.Fatal(err)
	}
	var typed apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, &typed); err != nil {
		t.Fatal(err)
	}
	return typed.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// at returns the value at a path, in the types that the table's YAML reader uses, or nil if there is none.
func at(t *testing.T, object *unstructured.Unstructured, path []string) any {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil || !found {
		return nil
	}
	return normal(t, value)
}

func set(t *testing.T, object *unstructured.Unstructured, path []string, value any) {
	t.Helper()
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

// merged returns a deep copy of base with the keys of over replaced.
func merged(base, over map[string]any) map[string]any {
	result := runtime.DeepCopyJSON(base)
	for key, value := range over {
		result[key] = runtime.DeepCopyJSONValue(value)
	}
	return result
}

func normal(t *testing.T, value any) any {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var result any
	if err := json.Unmarshal(content, &result); err != nil {
		t.Fatal(err)
	}
	return result
}
