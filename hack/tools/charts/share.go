package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// shareable is the length from which on a schema is worth a definition of its own.
const shareable = 120

// share writes every schema of some length that occurs twice only once, among the definitions: a pod's containers alone would
// otherwise be there dozens of times.
func share(schema object) object {
	counter := sharer{uses: map[string]int{}, names: map[string]string{}, taken: map[string]bool{}, definitions: object{}}
	counter.count(schema)
	shared := counter.replace("", schema).(object)
	if len(counter.definitions) > 0 {
		shared["definitions"] = counter.definitions
	}
	return shared
}

// A sharer finds equal schemas by their text.
type sharer struct {
	uses  map[string]int    // by text
	names map[string]string // of the definitions, by text
	taken map[string]bool

	definitions object
}

// textOf is the text of a schema. Its keys are sorted, so that equal schemas have equal texts.
func textOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("a schema that is no JSON: %v", err)) // it was made of JSON's types
	}
	return string(text)
}

// isSchema tells a schema of an object from a mapping of properties, which also is an object.
func isSchema(value object) bool {
	_, isProperty := value["properties"].(object)
	return isProperty && value["type"] == "object"
}

func (s *sharer) count(value any) {
	mapping, ok := value.(object)
	if !ok {
		return
	}
	if isSchema(mapping) {
		text := textOf(mapping)
		if s.uses[text]++; s.uses[text] > 1 {
			return // what is inside is in the definition, once
		}
	}
	for _, nested := range mapping {
		s.count(nested)
	}
}

// replace returns the value with references instead of what is shared. The name is that of the property that it belongs to.
func (s *sharer) replace(name string, value any) any {
	schema, ok := value.(object)
	if !ok {
		return value
	}
	text := ""
	if isSchema(schema) {
		text = textOf(schema)
		if s.uses[text] < 2 || len(text) < shareable {
			text = ""
		}
	}
	if known, found := s.names[text]; found && text != "" {
		return reference(known)
	}
	replaced := object{}
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		inner := name
		if keyword != "items" && keyword != "properties" && keyword != "additionalProperties" {
			inner = keyword
		}
		replaced[keyword] = s.replace(inner, schema[keyword])
	}
	if text == "" {
		return replaced
	}
	unique := name
	for number := 2; s.taken[unique]; number++ {
		unique = fmt.Sprintf("%s%d", name, number)
	}
	s.taken[unique], s.names[text], s.definitions[unique] = true, unique, replaced
	return reference(unique)
}

func reference(name string) object { return object{"$ref": "#/definitions/" + name} }
