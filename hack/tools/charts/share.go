package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// shareable is the minimum length of a schema that gets its own definition.
const shareable = 120

// share moves every schema of some length that occurs more than once to the definitions: the schema of a container
// alone occurs dozens of times.
func share(schema object) object {
	counter := sharer{
		uses: map[string]int{}, names: map[string]string{}, taken: map[string]bool{}, definitions: object{},
	}
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

// textOf returns the text of a schema. Its keys are sorted, so that equal schemas have equal texts.
func textOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encoding a schema: %v", err)) // never: it has only JSON types
	}
	return string(text)
}

// isSchema reports whether a value is the schema of an object, and not a mapping of properties.
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
			return // its contents are counted once, for the definition
		}
	}
	for _, nested := range mapping {
		s.count(nested)
	}
}

// replace returns a value with references to shared schemas. name is the name of the property that the value belongs
// to.
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
