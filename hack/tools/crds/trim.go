package main

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maxDescription is the length to which descriptions of Kubernetes' own fields are cut, at the end of a sentence if
// possible. Full descriptions would make up four fifths of a CRD, and are in Kubernetes' documentation.
const maxDescription = 80

// asFragment converts Kubernetes' schema of a type to the schema of a fragment: nothing is required, and the
// description and rules are those of the API's own type.
func asFragment(own, kubernetes apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	kubernetes.Required = nil
	kubernetes.Description = own.Description
	kubernetes.XValidations = own.XValidations
	// Ephemeral containers cannot be part of a pod that is being created.
	delete(kubernetes.Properties, "ephemeralContainers")
	return kubernetes
}

// trim adapts the schema of a Kubernetes type, and all schemas below it, for use in our CRDs:
//
//   - Descriptions are cut to a sentence.
//   - Defaults are removed: a default would turn "absent" into "set by the user", which overrides the operator's value.
//   - A list whose key field may be absent as a result becomes atomic.
//   - Status is removed, and metadata keeps the fields that a template can have.
//   - Names that our rules use get the maximum length that Kubernetes allows, which bounds the rules' cost.
func trim(schema *apiextensionsv1.JSONSchemaProps) {
	schema.Description = firstSentences(schema.Description, maxDescription)
	schema.Default = nil
	delete(schema.Properties, "status")
	for name, property := range schema.Properties {
		trim(&property)
		switch name {
		case "metadata":
			property.Properties = templateMetadata()
		case "hostname":
			property.MaxLength = new(int64(63))
		}
		schema.Properties[name] = property
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		trim(schema.AdditionalProperties.Schema)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		trim(schema.Items.Schema)
		if !allRequired(schema.XListMapKeys, schema.Items.Schema.Required) {
			schema.XListType = new("atomic")
			schema.XListMapKeys = nil
		}
	}
}

// templateMetadata is the metadata of an object that is created from a template.
func templateMetadata() map[string]apiextensionsv1.JSONSchemaProps {
	values := func(description string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{
			Description: description,
			Type:        "object",
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
				Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"},
			},
		}
	}
	return map[string]apiextensionsv1.JSONSchemaProps{
		"name":        {Description: "Name of the template.", Type: "string", MaxLength: new(int64(253))},
		"labels":      values("Labels of every object that is made from the template."),
		"annotations": values("Annotations of every object that is made from the template."),
	}
}

func allRequired(keys, required []string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(required, key) })
}

// firstSentences returns as many whole sentences of a description as fit into limit bytes, or as many words if the
// first sentence does not fit.
func firstSentences(description string, limit int) string {
	text := strings.Join(strings.Fields(description), " ")
	if len(text) <= limit {
		return text
	}
	text = text[:limit]
	if end := strings.LastIndex(text, ". "); end > 0 {
		return text[:end+1]
	}
	if end := strings.LastIndex(text, " "); end > 0 {
		text = text[:end]
	}
	return strings.TrimRight(text, " ,;:(") + " …"
}
