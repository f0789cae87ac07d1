// Package migrate translates values of the Helm charts slurm and slurm-operator of SlinkyProject/slurm-operator,
// versions 1.0 to 1.2, to values of the charts of this repository.
//
// Most values mean the same in both charts and are left as they are. A table of rules (slurm.go, operator.go) describes
// the others: each takes a value from its path and puts its meaning elsewhere, or drops it with a reason. Values that
// neither chart knows also stay, so that Helm refuses them and no mistake goes unnoticed. A note describes each change.
package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// A Chart is one of the charts whose values can be translated.
type Chart string

// The charts.
const (
	Slurm    Chart = "slurm"
	Operator Chart = "slurm-operator"
)

// A Note says what has become of the value at a path, and why.
type Note struct{ Path, Text string }

// String returns the note as one line.
func (n Note) String() string { return n.Path + ": " + n.Text }

// values are the values of a chart, or a part of them.
type values = map[string]any

// Values translates values of the other chart of that name. It does not change what it is given.
func Values(chart Chart, given map[string]any) (map[string]any, []Note, error) {
	rules, known := map[Chart][]rule{Slurm: slurmRules, Operator: operatorRules}[chart]
	if !known {
		return nil, nil, fmt.Errorf("there is no chart %q; choose %s or %s", chart, Slurm, Operator)
	}
	translated := &translation{values: withoutEmpty(given, chart == Slurm)}
	for _, rule := range rules {
		rule.apply(translated)
	}
	return translated.values, translated.notes, nil
}

// YAML translates values as YAML.
func YAML(chart Chart, given []byte) (translated []byte, notes []Note, err error) {
	var input values
	if err := yaml.UnmarshalStrict(given, &input); err != nil {
		return nil, nil, fmt.Errorf("reading the values: %w", err)
	}
	output, notes, err := Values(chart, input)
	if err != nil {
		return nil, nil, err
	}
	translated, err = yaml.Marshal(output)
	if err != nil {
		return nil, nil, fmt.Errorf("writing the values: %w", err)
	}
	return translated, notes, nil
}

// entriesOf are the values of the slurm chart whose entries have a meaning even if they are empty.
var entriesOf = []string{"nodesets", "loginsets", "partitions"}

// withoutEmpty copies values without those that are null or empty: they mean the same as none. The values that Helm
// shows of a release, with the defaults of its chart, are full of them. Lists are not searched, because emptyDir, for
// example, is a volume only if it is there.
func withoutEmpty(given values, hasEntries bool) values {
	kept := values{}
	for key, value := range given {
		switch value := value.(type) {
		case nil:
		case values:
			inner := withoutEmpty(value, false)
			if hasEntries && slices.Contains(entriesOf, key) {
				for name, entry := range value {
					if empty, ok := entry.(values); ok && len(withoutEmpty(empty, false)) == 0 {
						inner[name] = values{}
					}
				}
			}
			if len(inner) > 0 {
				kept[key] = inner
			}
		case []any:
			if len(value) > 0 {
				kept[key] = slices.Clone(value)
			}
		default:
			kept[key] = value
		}
	}
	return kept
}

// A translation is values that rules are being applied to.
type translation struct {
	values values
	notes  []Note
}

func (t *translation) note(path, format string, arguments ...any) {
	t.notes = append(t.notes, Note{path, fmt.Sprintf(format, arguments...)})
}

// get returns the value at a path, and nil if there is none.
func (t *translation) get(path string) any { return get(t.values, strings.Split(path, ".")) }

func get(in values, path []string) any {
	for len(path) > 1 {
		in, _ = in[path[0]].(values)
		path = path[1:]
	}
	return in[path[0]]
}

// set puts a value at a path.
func (t *translation) set(path string, value any) { set(t.values, strings.Split(path, "."), value) }

func set(in values, path []string, value any) {
	for ; len(path) > 1; path = path[1:] {
		inner, ok := in[path[0]].(values)
		if !ok {
			inner = values{}
			in[path[0]] = inner
		}
		in = inner
	}
	in[path[0]] = value
}

// take removes the value at a path, with mappings that become empty, and returns it.
func (t *translation) take(path string) any { return take(t.values, strings.Split(path, ".")) }

func take(in values, path []string) any {
	value, found := in[path[0]]
	if len(path) == 1 || !found {
		delete(in, path[0])
		return value
	}
	inner, ok := value.(values)
	if !ok {
		return nil
	}
	value = take(inner, path[1:])
	if len(inner) == 0 {
		delete(in, path[0])
	}
	return value
}

// add appends to the list at a path.
func (t *translation) add(path string, items ...any) {
	list, _ := t.get(path).([]any)
	t.set(path, append(slices.Clone(list), items...))
}

// matches returns the paths of values that match a pattern, in which * stands for any name.
func (t *translation) matches(pattern string) []string {
	before, after, wild := strings.Cut(pattern, ".*.")
	if !wild {
		if t.get(pattern) == nil {
			return nil
		}
		return []string{pattern}
	}
	var paths []string
	for _, name := range names(t.get(before)) {
		path := before + "." + name + "." + after
		if t.get(path) != nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// names returns the sorted keys of a mapping.
func names(mapping any) []string {
	entries, _ := mapping.(values)
	return slices.Sorted(maps.Keys(entries))
}

// truth returns a boolean, and false for anything else.
func truth(value any) bool {
	yes, _ := value.(bool)
	return yes
}

// text returns a string, and the empty string for anything else.
func text(value any) string {
	words, _ := value.(string)
	return words
}
