// Package catalog lists the values of the charts of SlinkyProject/slurm-operator, and what becomes of each when a user
// brings it along. Tests check every line, and docs/reference/values.md shows it.
package catalog

import (
	"embed"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/slurm-operator/slurm-operator/internal/migrate"
)

//go:embed *.yaml
var files embed.FS

// A Verdict is what becomes of a value.
type Verdict string

// The verdicts.
const (
	Accepted   Verdict = "accepted"   // by our chart, as it is
	Translated Verdict = "translated" // to another value of our chart
	Dropped    Verdict = "dropped"
)

// A Value is a value of the other chart.
type Value struct {
	// Path is relative to each of Of, if there are any.
	Path string   `json:"path"`
	Of   []string `json:"of"`

	Verdict Verdict `json:"verdict"`
	About   string  `json:"about"`

	// Value is an example, and With are other values that it needs, relative as well.
	Value any            `json:"value"`
	With  map[string]any `json:"with"`
	// Effect is a text that the example adds to the rendered manifests, and Without one that it removes from them.
	Effect  string `json:"effect"`
	Without string `json:"without"`
}

// A Catalog lists the values of a chart.
type Catalog struct {
	Base   map[string]any `json:"base"`
	Values []Value        `json:"values"`
}

// Read returns the catalog of a chart.
func Read(chart migrate.Chart) (Catalog, error) {
	var catalog Catalog
	content, err := files.ReadFile(string(chart) + ".yaml")
	if err != nil {
		return catalog, err
	}
	if err := yaml.UnmarshalStrict(content, &catalog); err != nil {
		return catalog, fmt.Errorf("reading the catalog of %s: %w", chart, err)
	}
	return catalog, nil
}

// A Case is a values file without and with one value.
type Case struct {
	Value

	Path          string
	Before, After map[string]any
}

// entry is the name of entries in the cases.
const entry = "main"

// defaults are the values with defaults of entries.
var defaults = map[string]string{"nodesets": "nodesetDefaults", "loginsets": "loginsetDefaults"}

// Cases returns a case for each path of each value, in an entry and in the defaults of entries.
func (c Catalog) Cases() []Case {
	var cases []Case
	for _, value := range c.Values {
		of := value.Of
		if len(of) == 0 {
			of = []string{""}
		}
		for _, parent := range of {
			path := strings.TrimPrefix(parent+"."+value.Path, ".")
			entries, _, isEntry := strings.Cut(path, ".*.")
			if !isEntry {
				cases = append(cases, c.build(value, "", parent, path))
				continue
			}
			pattern := entries + ".*"
			for _, place := range []string{entries + "." + entry, defaults[entries]} {
				if place != "" {
					cases = append(cases, c.build(value, entries, strings.Replace(parent, pattern, place, 1),
						strings.Replace(path, pattern, place, 1)))
				}
			}
		}
	}
	return cases
}

// build returns the case of a value at a path, with an entry if it is one of entries.
func (c Catalog) build(value Value, entries, parent, path string) Case {
	built := Case{Value: value, Path: path}
	for _, target := range []*map[string]any{&built.Before, &built.After} {
		*target = map[string]any{}
		merge(*target, c.Base)
		if entries != "" {
			merge(*target, nest(entries+"."+entry, map[string]any{}))
		}
		merge(*target, nest(parent, value.With))
	}
	merge(built.After, nest(path, value.Value))
	return built
}

// nest returns values with one value at a path.
func nest(path string, value any) map[string]any {
	if path == "" {
		nested, _ := value.(map[string]any)
		return nested
	}
	names := strings.Split(path, ".")
	for i := len(names) - 1; i > 0; i-- {
		value = map[string]any{names[i]: value}
	}
	return map[string]any{names[0]: value}
}

// merge copies values into others, mappings key by key.
func merge(into, from map[string]any) {
	for key, value := range from {
		nested, ok := value.(map[string]any)
		if !ok {
			into[key] = value
			continue
		}
		inner, ok := into[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			into[key] = inner
		}
		merge(inner, nested)
	}
}
