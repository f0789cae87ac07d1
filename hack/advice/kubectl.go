package advice

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// options are the flags of a command by name, without dashes; those with a value are true.
type options map[string]bool

// flagsOf reads options from a text, such as "selector= all-namespaces".
func flagsOf(texts ...string) options {
	flags := options{}
	for _, text := range texts {
		for word := range strings.FieldsSeq(text) {
			name, takesValue := strings.CutSuffix(word, "=")
			flags[name] = takesValue
		}
	}
	return flags
}

// A flag is one that was given, with its value.
type flag struct{ name, value string }

// parse separates flags from other arguments, up to two dashes, after which there may be another command.
func (known options) parse(arguments []string) (flags []flag, others []string, nested []string, problems []string) {
	for i := 0; i < len(arguments); i++ {
		word := arguments[i]
		if word == "--" {
			return flags, others, arguments[i+1:], problems
		}
		if !strings.HasPrefix(word, "-") || word == "-" {
			others = append(others, word)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !strings.HasPrefix(word, "--") && len(name) > 1 { // -n2, or several in one
			if _, found := known[name]; !found {
				name, value, hasValue = name[:1], name[1:], true
			}
		}
		takesValue, found := known[name]
		switch {
		case !found:
			problems = append(problems, "there is no flag "+strings.SplitN(word, "=", 2)[0])
			continue
		case takesValue && !hasValue && i+1 < len(arguments):
			i++
			value = arguments[i]
		}
		flags = append(flags, flag{name, value})
	}
	return flags, others, nil, problems
}

func value(flags []flag, names ...string) (string, bool) {
	for _, flag := range flags {
		if slices.Contains(names, flag.name) {
			return flag.value, true
		}
	}
	return "", false
}

// checkKubectl returns what is wrong with a command of kubectl.
func (a *api) checkKubectl(arguments []string, exact bool) []string {
	_, words, _, _ := flagsOf(kubectlFlags).parse(arguments)
	if len(words) == 0 {
		return nil
	}
	verb := words[0]
	own, found := kubectlVerbs[verb]
	switch {
	case !found && !exact && slices.Contains(prose, verb), verb == placeholder:
		return nil
	case !found:
		return []string{"kubectl has no command " + verb}
	}
	flags, words, nested, problems := flagsOf(kubectlFlags, own).parse(arguments)
	problems = append(problems, checkPods(flags)...)
	if len(nested) > 0 && slices.Contains(programs(), nested[0]) {
		problems = append(problems, a.check(Command{Words: nested, Exact: exact})...)
	}
	if slices.Contains(kubectlWithoutResource, verb) {
		return problems
	}
	words = objectsOf(verb, words[1:], flags)
	switch {
	case len(words) == 0 || !exact && slices.Contains(prose, words[0]):
		return problems
	case verb == "explain":
		return append(problems, a.checkExplained(words[0])...)
	default:
		return append(problems, a.checkObject(verb, words, flags)...)
	}
}

// checkPods checks what a command says about pods.
func checkPods(flags []flag) []string {
	var problems []string
	if selector, found := value(flags, "selector", "l"); found {
		problems = append(problems, checkSelector(selector)...)
	}
	if name, found := value(flags, "container", "c"); found && name != placeholder && !slices.Contains(containers, name) {
		problems = append(problems, "no pod has a container "+name)
	}
	return problems
}

// objectsOf returns the arguments of a command from the type of a resource on.
func objectsOf(verb string, words []string, flags []flag) []string {
	switch verb {
	case "rollout":
		return words[min(1, len(words)):]
	case "events":
		if object, found := value(flags, "for"); found {
			return []string{object}
		}
		return nil
	default:
		return words
	}
}

// checkExplained checks a path of fields, such as nodeset.spec.replicas.
func (a *api) checkExplained(name string) []string {
	resource, path, _ := strings.Cut(name, ".")
	schema := a.schemas[resource]
	if schema == nil || path == "" || strings.HasPrefix(path, group) {
		return nil
	}
	return nonEmpty(checkPath(schema, strings.Split(path, ".")))
}

func nonEmpty(problem string) []string {
	if problem == "" {
		return nil
	}
	return []string{problem}
}

// checkObject checks what a command does with resources.
func (a *api) checkObject(verb string, words []string, flags []flag) []string {
	var problems []string
	var resource string
	for each := range strings.SplitSeq(words[0], ",") {
		resource, _, _ = strings.Cut(each, "/")
		resource = strings.ToLower(resource)
		if name, _, _ := strings.Cut(resource, "."); name != strings.ToLower(placeholder) && !a.isResource(resource) {
			problems = append(problems, "there is no resource "+resource)
		}
	}
	schema := a.schemas[resource]
	if verb == "annotate" || verb == "label" {
		problems = append(problems, a.checkKeys(words[1:])...)
	}
	if schema == nil {
		return problems
	}
	if patch, found := value(flags, "patch", "p"); found && patch != placeholder {
		problems = append(problems, checkPatch(schema, patch)...)
	}
	for _, name := range []string{"output", "o", "for", "sort-by"} {
		text, _ := value(flags, name)
		if condition, is := strings.CutPrefix(text, "condition="); is {
			condition, _, _ = strings.Cut(condition, "=")
			if condition != placeholder && !slices.Contains(a.conditions, condition) {
				problems = append(problems, "there is no condition "+condition)
			}
		}
		for _, match := range field.FindAllString(text, -1) {
			fields := strings.Split(index.ReplaceAllString(strings.TrimPrefix(match, "."), ""), ".")
			problems = append(problems, nonEmpty(checkPath(schema, fields))...)
		}
	}
	return problems
}

var (
	// field matches a path from the root of an object in a JSON path or a column. index matches the index of a list.
	field = regexp.MustCompile(`\.(?:spec|status)(?:\.\w+|\[[^\]]*\])+`)
	index = regexp.MustCompile(`\[[^\]]*\]`)
)

func (a *api) isResource(name string) bool {
	return a.schemas[name] != nil || slices.Contains(a.categories, name) || slices.Contains(strings.Fields(builtIn), name)
}

// checkPatch checks the fields of a patch: a merge patch, or a list of operations.
func checkPatch(schema *apiextensionsv1.JSONSchemaProps, patch string) []string {
	var content any
	if err := json.Unmarshal([]byte(patch), &content); err != nil {
		return nonEmpty("the patch is not JSON: " + err.Error())
	}
	var problems []string
	operations, _ := content.([]any)
	for _, operation := range operations {
		object, _ := operation.(map[string]any)
		path, _ := object["path"].(string)
		fields := strings.Split(strings.TrimPrefix(path, "/"), "/")
		fields = slices.DeleteFunc(fields, func(name string) bool { return name == "-" || isNumber(name) })
		problems = append(problems, nonEmpty(checkPath(schema, fields))...)
	}
	return append(problems, checkValue(schema, nil, content)...)
}

// checkKeys checks annotations or labels that are set or removed.
func (a *api) checkKeys(words []string) []string {
	var problems []string
	for _, word := range words {
		key, _, sets := strings.Cut(word, "=")
		key, removes := strings.CutSuffix(key, "-")
		if (sets || removes) && strings.Contains(key, group+"/") && !slices.Contains(a.keys, key) {
			problems = append(problems, "there is no annotation or label "+key)
		}
	}
	return problems
}

// names matches the values of the label with the name of a daemon in a selector.
var names = regexp.MustCompile(`app\.kubernetes\.io/name(?:==?([\w-]+)| in \(([\w,-]+))`)

func checkSelector(selector string) []string {
	var problems []string
	for _, match := range names.FindAllStringSubmatch(selector, -1) {
		for name := range strings.SplitSeq(match[1]+match[2], ",") {
			if name != placeholder && !slices.Contains(podNames, name) {
				problems = append(problems, "no pod has the label app.kubernetes.io/name="+name)
			}
		}
	}
	return problems
}
