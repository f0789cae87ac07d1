package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// object is a JSON object.
type object = map[string]any

// writeSchema writes the values.schema.json of a chart. The type of a value is that of its default, unless a comment
// before the description of the value gives a schema:
//
//	# @schema {enum: [Ignore, Fail]}
//	# -- What happens when the webhook does not answer.
//	failurePolicy: Ignore
//
// Besides JSON Schema, {field: NodeSet.spec.replicas} is the schema of an API field, and {kind: NodeSet} that of an
// entry that becomes an object: see entry. {volume: NodeSet} is that of a volume in the pods of a kind, without its
// name, and {settings: {}} that of a map of Slurm settings.
func writeSchema(chart string, definitions map[string]definition) error {
	content, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return err
	}
	reader := valuesReader{definitions}
	schema, err := reader.mapping("", document.Content[0])
	if err != nil {
		return err
	}
	// Helm passes the global values of a parent chart.
	schema["properties"].(object)["global"] = object{
		"type": "object", "description": "Values of a chart that this one is a part of.",
	}
	shared := share(schema)
	shared["$schema"] = "http://json-schema.org/draft-07/schema#"
	shared["$comment"] = notice
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(shared); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(chart, "values.schema.json"), text.Bytes(), 0o644)
}

// A valuesReader derives schemas from values and their comments.
type valuesReader struct{ definitions map[string]definition }

// mapping returns the schema of a mapping with known keys.
func (r valuesReader) mapping(path string, node *yaml.Node) (object, error) {
	properties := object{}
	var faults []error
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		schema, err := r.value(path+key.Value, key, value)
		faults = append(faults, err)
		properties[key.Value] = schema
	}
	return object{"type": "object", "properties": properties, "additionalProperties": false}, errors.Join(faults...)
}

// value returns the schema of a value.
func (r valuesReader) value(path string, key, value *yaml.Node) (object, error) {
	annotation, description, err := readComment(key.HeadComment)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var schema object
	switch {
	case annotation != nil:
		schema, err = r.expand(annotation)
		if schema["type"] == nil && schema["enum"] == nil && err == nil {
			schema["type"], err = typeOf(value)
		}
	case value.Kind == yaml.MappingNode && len(value.Content) > 0:
		schema, err = r.mapping(path+".", value)
		if err != nil {
			return nil, err
		}
		return withDescription(schema, description), nil
	default:
		var kind string
		kind, err = typeOf(value)
		schema = object{"type": kind}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if description == "" {
		return nil, fmt.Errorf("%s has no description: add a comment that starts with # -- above it", path)
	}
	return withDescription(schema, description), nil
}

func withDescription(schema object, description string) object {
	if description != "" {
		schema["description"] = description
	}
	return schema
}

// readComment returns the annotation and the description in the comment above a value.
func readComment(comment string) (annotation object, description string, err error) {
	var words []string
	for line := range strings.Lines(comment) {
		text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		switch {
		case strings.HasPrefix(text, "@schema "):
			if err := yaml.Unmarshal([]byte(strings.TrimPrefix(text, "@schema ")), &annotation); err != nil {
				return nil, "", fmt.Errorf("reading %q: %w", text, err)
			}
		case strings.HasPrefix(text, "-- "):
			words = []string{strings.TrimPrefix(text, "-- ")}
		case len(words) > 0 && text != "" && !strings.HasPrefix(text, "@"):
			words = append(words, text)
		}
	}
	return annotation, strings.Join(words, " "), nil
}

func typeOf(value *yaml.Node) (string, error) {
	switch value.ShortTag() {
	case "!!str":
		return "string", nil
	case "!!int":
		return "integer", nil
	case "!!bool":
		return "boolean", nil
	case "!!seq":
		return "", errors.New("a list needs a comment # @schema {items: …}")
	}
	return "", errors.New("an empty value needs a comment # @schema {…}")
}

var kindName = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// expand replaces field and kind in an annotation with JSON Schema, at any depth.
func (r valuesReader) expand(annotation object) (object, error) {
	if field, ok := annotation["field"].(string); ok {
		schema, err := lookUp(r.definitions, field)
		if err != nil {
			return nil, err
		}
		return asJSONSchema(schema), nil
	}
	if kind, ok := annotation["kind"].(string); ok && kindName.MatchString(kind) {
		return entry(r.definitions, kind)
	}
	if _, ok := annotation["settings"]; ok {
		return settings(), nil
	}
	if kind, ok := annotation["volume"].(string); ok {
		pod, err := lookUp(r.definitions, kind+".spec.template.spec")
		if err != nil {
			return nil, err
		}
		schema := asJSONSchema(pod)["properties"].(object)["volumes"].(object)["items"].(object)
		// The chart sets the name of the volume.
		delete(schema, "required")
		delete(schema["properties"].(object), "name")
		return schema, nil
	}
	for keyword, value := range annotation {
		if nested, ok := value.(object); ok {
			expanded, err := r.expand(nested)
			if err != nil {
				return nil, err
			}
			annotation[keyword] = expanded
		}
	}
	return annotation, nil
}
