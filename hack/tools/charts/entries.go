package main

import "maps"

// entry returns the schema of an entry that becomes an object of a kind: the fields of its spec, those of entryFields,
// and the other forms of fields that the chart accepts.
func entry(definitions map[string]definition, kind string) (object, error) {
	spec, err := lookUp(definitions, kind+".spec")
	if err != nil {
		return nil, err
	}
	schema := asJSONSchema(spec)
	// The chart sets the cluster of an entry.
	delete(schema, "required")
	fields := schema["properties"].(object)
	delete(fields, "controllerRef")
	for _, field := range fields {
		acceptImageParts(field)
	}
	if template, found := properties(fields["template"]); found {
		fields["podSpec"] = template["spec"]
	}
	if _, found := fields["extraConf"]; found {
		fields["extraConfMap"] = settings()
	}
	if partition, found := properties(fields["partition"]); found {
		partition["configMap"] = settings()
	}
	maps.Copy(fields, entryFields(kind))
	return schema, nil
}

// entryFields returns the fields of an entry that becomes an object, besides those of its spec.
func entryFields(kind string) object {
	text := object{"type": "object", "additionalProperties": object{"type": "string"}}
	fields := object{"metadata": object{
		"type": "object", "properties": object{"labels": text, "annotations": text}, "additionalProperties": false,
	}}
	if kind != "Controller" { // every cluster needs one
		fields["enabled"] = object{"type": "boolean"}
	}
	return fields
}

// settings returns the schema of a map of Slurm settings: text, numbers, booleans, and lists of them.
func settings() object {
	scalars := []any{"string", "number", "boolean"}
	return object{"type": "object", "additionalProperties": object{
		"type": append(scalars, "array"), "items": object{"type": scalars},
	}}
}

// acceptImageParts lets the image of a container also be given as repository, tag and digest.
func acceptImageParts(container any) {
	fields, found := properties(container)
	if !found {
		return
	}
	if image, found := fields["image"]; found {
		text := object{"type": "string"}
		fields["image"] = object{"anyOf": []any{image, object{
			"type":                 "object",
			"properties":           object{"repository": text, "tag": text, "digest": text},
			"additionalProperties": false,
		}}}
	}
}

// properties returns the properties in the schema of an object.
func properties(schema any) (object, bool) {
	fields, _ := schema.(object)
	found, ok := fields["properties"].(object)
	return found, ok
}
