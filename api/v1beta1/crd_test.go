package v1beta1_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// maxAnnotation is Kubernetes' limit on the total size of an object's annotations. "kubectl apply" without
// --server-side keeps the whole object, as compact JSON, in one of them.
const maxAnnotation = 256 * 1024

func TestEveryFieldHasADescription(t *testing.T) {
	for kind, definition := range readCRDs(t) {
		schema := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		fields := 0
		walk(schema, "", func(path string, property *apiextensionsv1.JSONSchemaProps) {
			fields++
			// The API server describes metadata itself.
			if property.Description == "" && path != "metadata" {
				t.Errorf("%s: %s has no description", kind, path)
			}
		})
		t.Logf("%s has %d fields", kind, fields)
	}
}

func TestFragmentFieldsHaveNoDefaults(t *testing.T) {
	for kind, definition := range readCRDs(t) {
		walk(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, "",
			func(path string, property *apiextensionsv1.JSONSchemaProps) {
				if property.Title == "" {
					return
				}
				walk(property, path, func(path string, property *apiextensionsv1.JSONSchemaProps) {
					if property.Default != nil {
						t.Errorf("%s: %s has the default %s, which would be mistaken for a value set by the user", kind,
							path, property.Default.Raw)
					}
				})
			})
	}
}

func TestCRDsFitIntoAnAnnotation(t *testing.T) {
	for kind, definition := range readCRDs(t) {
		content, err := json.Marshal(definition)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", kind, len(content))
		if len(content) > maxAnnotation {
			t.Errorf("%s: the CRD has %d bytes of JSON, kubectl apply supports at most %d", kind, len(content),
				maxAnnotation)
		}
	}
}

// Each table row of docs/reference/status.md that begins with a kind and a field says which controller writes the field
// and when.
func TestEveryStatusFieldIsDocumented(t *testing.T) {
	content, err := os.ReadFile("../../docs/reference/status.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	row := regexp.MustCompile("(?m)^\\| ([A-Z][A-Za-z]+) \\| `([A-Za-z.]+)` \\| ([^|]+) \\| ([^|]+) \\|$")
	for _, match := range row.FindAllStringSubmatch(string(content), -1) {
		documented = append(documented, match[1]+" "+match[2])
	}
	var existing []string
	for kind, definition := range readCRDs(t) {
		status := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		walk(&status, "", func(path string, property *apiextensionsv1.JSONSchemaProps) {
			if len(property.Properties) == 0 && !strings.HasPrefix(path, "conditions[]") {
				existing = append(existing, kind+" "+path)
			}
		})
	}
	slices.Sort(documented)
	slices.Sort(existing)
	if diff := cmp.Diff(existing, documented); diff != "" {
		t.Errorf("status fields (-existing +documented):\n%s", diff)
	}
}

func readCRDs(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d CRDs: %v", len(files), err)
	}
	definitions := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, definition); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		definitions[definition.Spec.Names.Kind] = definition
	}
	return definitions
}

// walk calls visit for every property below a schema.
func walk(schema *apiextensionsv1.JSONSchemaProps, path string,
	visit func(path string, property *apiextensionsv1.JSONSchemaProps)) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		below := strings.TrimPrefix(path+"."+name, ".")
		visit(below, &property)
		walk(&property, below, visit)
	}
	if schema.Items != nil {
		walk(schema.Items.Schema, path+"[]", visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walk(schema.AdditionalProperties.Schema, path+"[]", visit)
	}
}
