//go:build integration

package api_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// refusal is a row of testdata/refused.yaml: an object that the API server must refuse.
type refusal struct {
	// Case describes what is wrong with the object.
	Case string `json:"case"`
	Kind string `json:"kind"`
	// Name of the object, "x" when empty.
	Name string `json:"name"`
	// Was is the object's spec before the refused update; without it the creation is refused.
	Was  map[string]any `json:"was"`
	Spec map[string]any `json:"spec"`
}

func TestInvalidObjectsAreRefusedWithFieldRuleAndRemedy(t *testing.T) {
	var table []refusal
	readTable(t, "refused.yaml", &table)
	if len(table) < 60 {
		t.Errorf("the table has %d rows, want at least 60", len(table))
	}
	var messages strings.Builder
	for _, row := range table {
		t.Run(row.Case, func(t *testing.T) {
			message := row.refusedWith(t)
			fmt.Fprintf(&messages, "%s: %s\n", row.Kind, row.Case)
			for line := range strings.Lines(message) {
				if ofKubernetes(line) {
					continue
				}
				fmt.Fprintf(&messages, "    %s\n", refusedValue.ReplaceAllString(strings.TrimSpace(line), "$1"))
			}
		})
	}
	checkGolden(t, "refused.golden", messages.String())
}

// refusedValue matches the refused value in a cause. Until 1.34, Kubernetes prints its type instead.
var refusedValue = regexp.MustCompile(`(: Invalid value: )("([^"\\]|\\.)*"|\[[^\]]*\]|[-0-9.e+]+|true|false|null): `)

// ofKubernetes reports whether a cause is one that Kubernetes adds to those of our schema: that rules were not checked
// after a refusal by the schema, and, since 1.36, that a value has another format.
func ofKubernetes(cause string) bool {
	return strings.HasPrefix(cause, "<nil>: Invalid value: null: some validation rules were not checked") ||
		strings.HasPrefix(cause, `<nil>: Invalid value: "": Checked value must be of type`)
}

func (r refusal) refusedWith(t *testing.T) string {
	t.Helper()
	name := r.Name
	if name == "" {
		name = "x"
	}
	ns := namespace(t)
	before := object(r.Kind, ns, name, r.Was)
	after := object(r.Kind, ns, name, r.Spec)
	var err error
	if r.Was == nil {
		err = strict.Create(t.Context(), after)
	} else {
		if err := strict.Create(t.Context(), before); err != nil {
			t.Fatalf("creating the object before the update: %v", err)
		}
		after.SetResourceVersion(before.GetResourceVersion())
		err = strict.Update(t.Context(), after)
	}
	if err == nil {
		t.Fatalf("accepted: %s", dump(after))
	}
	return listed(err.Error(), r.Kind, name)
}

// listed splits the causes of an API server error, which are joined in one line, into lines.
func listed(message, kind, name string) string {
	message = strings.TrimPrefix(message, fmt.Sprintf("%s.slinky.slurm.net %q is invalid: ", kind, name))
	if strings.HasPrefix(message, "[") && strings.HasSuffix(message, "]") {
		message = strings.ReplaceAll(message[1:len(message)-1], ", spec.", "\nspec.")
		message = strings.ReplaceAll(message, ", .spec.", "\n.spec.")
		message = strings.ReplaceAll(message, ", <nil>:", "\n<nil>:")
	}
	return message
}

func dump(object *unstructured.Unstructured) string {
	content, err := object.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(content)
}
