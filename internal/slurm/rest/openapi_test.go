package rest

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// update reads OpenAPI documents, as printed by slurmrestd --generate-openapi-spec, and stores the types of the members
// that we read. The documents themselves are too large to store.
var update = flag.String("update-openapi", "", "directory of OpenAPI documents to generate testdata/openapi.json from")

// schemas maps each of Slurm's schemas to the struct that reads it.
var schemas = map[string]reflect.Type{
	"node":             reflect.TypeFor[wireNode](),
	"job_info":         reflect.TypeFor[wireJob](),
	"reservation_info": reflect.TypeFor[wireReservation](),
	"stats_msg":        reflect.TypeFor[wireDiag](),
	"openapi_error":    reflect.TypeFor[wireReason](),
}

// types are the types of members, by document, schema and member.
type types map[string]map[string]map[string]string

const extract = "testdata/openapi.json"

func TestFieldsMatchTheRealAPI(t *testing.T) {
	if *update != "" {
		writeExtract(t, *update)
	}
	content, err := os.ReadFile(extract)
	if err != nil {
		t.Fatal(err)
	}
	var documents types
	if err := json.Unmarshal(content, &documents); err != nil {
		t.Fatal(err)
	}
	if len(documents) < 5 {
		t.Errorf("only %d documents", len(documents))
	}
	for document, known := range documents {
		for schema, structure := range schemas {
			for field := range structure.Fields() {
				name := field.Tag.Get("json")
				if _, version, _ := strings.Cut(document, "-"); version < field.Tag.Get("since") {
					continue
				}
				if got, want := known[schema][name], jsonType(field.Type); !fits(want, got) {
					t.Errorf("%s: %s.%s is %q, and is read as %s", document, schema, name, got, want)
				}
			}
		}
	}
}

// fits reports whether a member of the sent type can be read as the other. A number may be sent as an object.
func fits(read, sent string) bool {
	return read == sent || (read == "number" && (sent == "integer" || sent == "object"))
}

func jsonType(field reflect.Type) string {
	switch {
	case field == reflect.TypeFor[number]():
		return "number"
	case field.Kind() == reflect.String:
		return "string"
	case field.Kind() == reflect.Bool:
		return "boolean"
	case field.Kind() == reflect.Slice:
		return "array"
	case field.Kind() == reflect.Struct:
		return "object"
	default:
		return "number"
	}
}

// schema is the part of an OpenAPI schema that the test uses.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       string            `json:"type"`
	Properties map[string]schema `json:"properties"`
}

func writeExtract(t *testing.T, directory string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no documents in %s: %v", directory, err)
	}
	documents := types{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var document struct {
			Components struct {
				Schemas map[string]schema `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(content, &document); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		_, version, _ := strings.Cut(name, "-")
		documents[name] = map[string]map[string]string{}
		for _, short := range slices.Sorted(maps.Keys(schemas)) {
			members := map[string]string{}
			properties := document.Components.Schemas[version+"_"+short].Properties
			for field := range schemas[short].Fields() {
				member := field.Tag.Get("json")
				property, ok := properties[member]
				if !ok {
					continue
				}
				if property.Ref != "" {
					property = document.Components.Schemas[property.Ref[strings.LastIndex(property.Ref, "/")+1:]]
				}
				members[member] = property.Type
			}
			documents[name][short] = members
		}
	}
	content, err := json.MarshalIndent(documents, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(extract, append(content, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
