package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// kinds are the definitions that the tests need.
var kinds = map[string]definition{
	"NodeSet": {schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {
			Type:     "object",
			Required: []string{"controllerRef"},
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"controllerRef":  {Type: "object"},
				"replicas":       {Type: "integer", Description: "How many."},
				"maxUnavailable": {XIntOrString: true},
				"extraConf":      {Type: "string"},
				"slurmd": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"image": {Type: "string"},
				}},
				"partition": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"config": {Type: "string"},
				}},
				"template": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object"},
				}},
			},
		},
	}}}}

func TestValueSchema(t *testing.T) {
	text := object{"type": "string"}
	closed := func(properties object) object {
		return object{"type": "object", "properties": properties, "additionalProperties": false}
	}
	imageParts := closed(object{"repository": text, "tag": text, "digest": text})
	for name, test := range map[string]struct {
		values string
		want   object
	}{
		"a default shows the type": {
			values: "# -- How many.\nreplicas: 1",
			want:   object{"type": "integer", "description": "How many."},
		},
		"an annotation adds to the type": {
			values: "# @schema {minimum: 0}\n# -- How many,\n# at least.\nreplicas: 1",
			want:   object{"type": "integer", "minimum": 0, "description": "How many, at least."},
		},
		"a field of the API": {
			values: "# @schema {field: NodeSet.spec.maxUnavailable}\n# -- How many.\nreplicas: 1",
			want:   object{"type": []string{"integer", "string"}, "description": "How many."},
		},
		"an entry that becomes an object": {
			values: "# @schema {kind: NodeSet}\n# -- Defaults.\nreplicas: {}",
			want: object{
				"type": "object", "additionalProperties": false, "description": "Defaults.",
				"properties": object{
					"replicas": object{"type": "integer"}, "maxUnavailable": object{
						"type": []string{"integer", "string"},
					},
					"enabled": entryFields("NodeSet")["enabled"], "metadata": entryFields("NodeSet")["metadata"],
					"extraConf": text, "extraConfMap": settings(),
					"slurmd":    closed(object{"image": object{"anyOf": []any{text, imageParts}}}),
					"partition": closed(object{"config": text, "configMap": settings()}),
					"template":  closed(object{"spec": object{"type": "object"}}), "podSpec": object{"type": "object"},
				},
			},
		},
		"a map of Slurm settings": {
			values: "# @schema {settings: {}}\n# -- Parameters.\nreplicas: {}",
			want:   withDescription(settings(), "Parameters."),
		},
	} {
		t.Run(name, func(t *testing.T) {
			schema, err := schemaOf(t, test.values)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, schema["properties"].(object)["replicas"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalidChartValuesAreRejected(t *testing.T) {
	for name, test := range map[string]struct{ values, want string }{
		"a value without a description": {"a:\n  b: 1", "a.b has no description"},
		"a list without a type":         {"# -- List.\na: []", "a: a list needs"},
		"an empty value without a type": {"# -- Nothing.\na: {}", "a: an empty value needs"},
		"an unknown field": {
			"# @schema {field: NodeSet.spec.size}\n# -- Size.\na: 1", "there is no field size",
		},
		"an unknown kind":                {"# @schema {kind: Node}\n# -- Node.\na: {}", "there is no kind Node"},
		"an annotation that is not YAML": {"# @schema {\n# -- Broken.\na: 1", "reading"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := schemaOf(t, test.values); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

func schemaOf(t *testing.T, values string) (object, error) {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(values), &document); err != nil {
		t.Fatal(err)
	}
	return valuesReader{kinds}.mapping("", document.Content[0])
}

func TestShareDeduplicatesSchemas(t *testing.T) {
	container := func() object {
		return object{"type": "object", "properties": object{
			"image":   object{"type": "string", "maxLength": 100},
			"command": object{"type": "array", "items": object{"type": "string"}},
			"tty":     object{"type": "boolean"},
		}}
	}
	shared := share(object{"type": "object", "properties": object{
		"containers": object{"type": "array", "items": container()},
		"init":       container(),
		"port":       object{"type": "object", "properties": object{}},
	}})
	want := object{
		"type": "object",
		"properties": object{
			"containers": object{"type": "array", "items": reference("containers")},
			"init":       reference("containers"),
			"port":       object{"type": "object", "properties": object{}},
		},
		"definitions": object{"containers": container()},
	}
	if diff := cmp.Diff(want, shared); diff != "" {
		t.Error(diff)
	}
}

func TestRoleRulesAreSplitByScope(t *testing.T) {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"update"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}},
	}
	got := map[string][]string{}
	for _, part := range parts[:3] {
		for _, rule := range part.of(rules) {
			got[part.name] = append(got[part.name], rule.Resources...)
		}
	}
	want := map[string][]string{
		"manager.cluster":    {"nodes"},
		"manager.own":        {"events", "leases"},
		"manager.namespaces": {"pods", "events"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
