package advice

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// An api is what commands may name.
type api struct {
	// schemas are those of the custom resources, by each name that kubectl knows the resource by.
	schemas map[string]*apiextensionsv1.JSONSchemaProps
	// categories are names for all resources of a kind of resources.
	categories []string
	// keys are the annotations and labels, and conditions the types of conditions.
	keys, conditions []string
	// values are the schemas of the values of charts, by the chart.
	values map[string]map[string]any
}

const group = "slinky.slurm.net"

func readAPI(files fs.FS) (*api, error) {
	a := &api{schemas: map[string]*apiextensionsv1.JSONSchemaProps{}, values: map[string]map[string]any{}}
	for pattern, read := range map[string]func(name string, content []byte) error{
		"config/crd/bases/*.yaml": a.readCRD, "api/v1beta1/*.go": a.readConstants,
		"charts/*/values.schema.json": a.readValues,
	} {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			content, err := fs.ReadFile(files, name)
			if err != nil {
				return nil, err
			}
			if err := read(name, content); err != nil {
				return nil, fmt.Errorf("reading %s: %w", name, err)
			}
		}
	}
	return a, nil
}

func (a *api) readCRD(_ string, content []byte) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(content, &crd); err != nil {
		return err
	}
	names := crd.Spec.Names
	a.categories = append(a.categories, names.Categories...)
	for _, name := range slices.Concat([]string{names.Plural, names.Singular}, names.ShortNames) {
		a.schemas[name] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		a.schemas[name+"."+group] = a.schemas[name]
	}
	return nil
}

func (a *api) readValues(name string, content []byte) error {
	var values map[string]any
	err := yaml.Unmarshal(content, &values)
	a.values[path.Base(path.Dir(name))] = values
	return err
}

// readConstants reads the annotations, labels and types of conditions.
func (a *api) readConstants(name string, content []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		constant, is := node.(*ast.ValueSpec)
		if !is {
			return true
		}
		for i, identifier := range constant.Names {
			if i >= len(constant.Values) {
				continue
			}
			value := strings.ReplaceAll(constantText(constant.Values[i]), "GroupName", group)
			switch {
			case strings.Contains(value, "."+group+"/"):
				a.keys = append(a.keys, value)
			case strings.HasPrefix(identifier.Name, "Condition"):
				a.conditions = append(a.conditions, value)
			}
		}
		return true
	})
	return nil
}

// constantText returns the value of a constant, with the names of those that it is made from.
func constantText(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(expression.Value) // it is a literal
		return text
	case *ast.BinaryExpr:
		return constantText(expression.X) + constantText(expression.Y)
	case *ast.Ident:
		return expression.Name
	default:
		return ""
	}
}

// checkPath returns what is wrong with a path of fields, such as spec.replicas.
func checkPath(schema *apiextensionsv1.JSONSchemaProps, fields []string) string {
	for i, field := range fields {
		if schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields || i == 0 && field == "metadata" ||
			field == placeholder {
			return ""
		}
		for schema.Type == "array" {
			schema = schema.Items.Schema
		}
		if schema.AdditionalProperties != nil {
			return ""
		}
		property, found := schema.Properties[field]
		if !found {
			return fmt.Sprintf("there is no field %s; there are %s", strings.Join(fields[:i+1], "."),
				strings.Join(slices.Sorted(maps.Keys(schema.Properties)), ", "))
		}
		schema = &property
	}
	return ""
}

// checkValue returns what is wrong with the fields of a patch.
func checkValue(schema *apiextensionsv1.JSONSchemaProps, at []string, value any) []string {
	object, is := value.(map[string]any)
	if !is {
		return nil
	}
	var problems []string
	for _, field := range slices.Sorted(maps.Keys(object)) {
		fields := append(slices.Clip(at), field)
		if problem := checkPath(schema, fields); problem != "" {
			problems = append(problems, problem)
			continue
		}
		problems = append(problems, checkType(schema, fields, object[field])...)
		problems = append(problems, checkValue(schema, fields, object[field])...)
	}
	return problems
}

// checkType compares the type of a value with that of its field.
func checkType(schema *apiextensionsv1.JSONSchemaProps, fields []string, value any) []string {
	for _, field := range fields {
		property, found := schema.Properties[field]
		if !found {
			return nil // anything is allowed there
		}
		schema = &property
	}
	is := ""
	switch value.(type) {
	case string:
		is = "string"
	case bool:
		is = "boolean"
	case float64:
		is = "number"
	case []any:
		is = "array"
	case map[string]any:
		is = "object"
	}
	if is == "" || schema.XIntOrString || schema.Type == "" || schema.Type == is ||
		schema.Type == "integer" && is == "number" || value == placeholder {
		return nil
	}
	return []string{fmt.Sprintf("the field %s is of the type %s, not %s", strings.Join(fields, "."), schema.Type, is)}
}
