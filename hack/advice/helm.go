package advice

import (
	"path"
	"slices"
	"strings"
)

// checkHelm returns what is wrong with a command of Helm: also values that a chart of this project does not have.
func (a *api) checkHelm(arguments []string, exact bool) []string {
	_, words, _, _ := flagsOf(helmFlags).parse(arguments)
	if len(words) == 0 {
		return nil
	}
	own, found := helmVerbs[words[0]]
	switch {
	case !found && !exact && slices.Contains(prose, words[0]):
		return nil
	case !found:
		return []string{"helm has no command " + words[0]}
	}
	flags, words, _, problems := flagsOf(helmFlags, own).parse(arguments)
	var schema map[string]any
	for _, word := range words[1:] {
		chart := path.Base(word)
		switch {
		case !strings.HasPrefix(word, "charts/") && !strings.HasPrefix(word, "oci://"):
		case a.values[chart] == nil:
			problems = append(problems, "there is no chart "+chart)
		default:
			schema = a.values[chart]
		}
	}
	for _, flag := range flags {
		if schema == nil || !strings.HasPrefix(flag.name, "set") {
			continue
		}
		name, _, _ := strings.Cut(flag.value, "=")
		if !hasValue(schema, schema, strings.Split(strings.ReplaceAll(name, `\.`, ""), ".")) {
			problems = append(problems, "the chart has no value "+name)
		}
	}
	return problems
}

// hasValue reports whether a part of a chart's schema has a path.
func hasValue(schema, part map[string]any, path []string) bool {
	if reference, is := part["$ref"].(string); is {
		definitions, _ := schema["definitions"].(map[string]any)
		part, _ = definitions[strings.TrimPrefix(reference, "#/definitions/")].(map[string]any)
	}
	if len(path) == 0 || part == nil {
		return true
	}
	name, _, _ := strings.Cut(path[0], "[")
	properties, _ := part["properties"].(map[string]any)
	below, found := properties[name].(map[string]any)
	others, open := part["additionalProperties"].(map[string]any)
	switch {
	case found:
		return hasValue(schema, below, path[1:])
	case open:
		return hasValue(schema, others, path[1:])
	default:
		return part["additionalProperties"] != false
	}
}
