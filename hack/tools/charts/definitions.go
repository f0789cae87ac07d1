package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// A definition is one CustomResourceDefinition.
type definition struct {
	file, text string
	schema     *apiextensionsv1.JSONSchemaProps
}

// readDefinitions reads all CRDs in a directory, by kind.
func readDefinitions(dir string) (map[string]definition, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	definitions := map[string]definition{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var parsed apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content, &parsed); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		definitions[parsed.Spec.Names.Kind] = definition{
			file: file, text: string(content), schema: parsed.Spec.Versions[0].Schema.OpenAPIV3Schema,
		}
	}
	return definitions, nil
}

// lookUp finds the schema of a field, such as NodeSet.spec.template.
func lookUp(definitions map[string]definition, path string) (*apiextensionsv1.JSONSchemaProps, error) {
	kind, fields, _ := strings.Cut(path, ".")
	definition, found := definitions[kind]
	if !found {
		return nil, fmt.Errorf("there is no kind %s", kind)
	}
	schema := definition.schema
	for name := range strings.SplitSeq(fields, ".") {
		property, found := schema.Properties[name]
		if !found {
			return nil, fmt.Errorf("%s: there is no field %s", path, name)
		}
		schema = &property
	}
	return schema, nil
}

// asJSONSchema converts the schema of a field to JSON Schema that refuses unknown fields. It omits descriptions, which
// are in the API reference, and rules that only the API server can check.
func asJSONSchema(schema *apiextensionsv1.JSONSchemaProps) object {
	if schema.XIntOrString {
		return object{"type": []string{"integer", "string"}}
	}
	result := object{}
	if schema.Type != "" {
		result["type"] = schema.Type
	}
	if len(schema.Enum) > 0 {
		result["enum"] = schema.Enum
	}
	for keyword, bound := range map[string]*int64{
		"minLength": schema.MinLength, "maxLength": schema.MaxLength, "minItems": schema.MinItems,
		"maxItems": schema.MaxItems,
	} {
		if bound != nil {
			result[keyword] = *bound
		}
	}
	for keyword, bound := range map[string]*float64{"minimum": schema.Minimum, "maximum": schema.Maximum} {
		if bound != nil {
			result[keyword] = *bound
		}
	}
	if schema.Pattern != "" {
		result["pattern"] = schema.Pattern
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		result["items"] = asJSONSchema(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		result["additionalProperties"] = asJSONSchema(schema.AdditionalProperties.Schema)
	}
	if len(schema.Properties) > 0 {
		properties := object{}
		for name, property := range schema.Properties {
			properties[name] = asJSONSchema(&property)
		}
		result["properties"] = properties
		result["additionalProperties"] = false
	}
	if len(schema.Required) > 0 {
		result["required"] = schema.Required
	}
	return result
}
