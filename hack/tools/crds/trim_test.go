package main

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestFirstSentences(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"a short description stays":     {in: "Name of it.", want: "Name of it."},
		"line breaks become blanks":     {in: "Name\nof it.", want: "Name of it."},
		"whole sentences that fit stay": {in: "One. Two. Three sentences.", want: "One. Two."},
		"a long first sentence is cut after a word": {
			in: "A sentence that is too long, really.", want: "A sentence that is …",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := firstSentences(test.in, 22); got != test.want {
				t.Errorf("firstSentences(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

func TestTrimRemovesDefaultsAndTheKeysThatNeedThem(t *testing.T) {
	list := func(required ...string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{
			Type:         "array",
			XListType:    new("map"),
			XListMapKeys: []string{"port", "protocol"},
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type:     "object",
				Required: required,
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"port":     {Type: "integer"},
					"protocol": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"TCP"`)}},
				},
			}},
		}
	}
	for name, test := range map[string]struct {
		schema   apiextensionsv1.JSONSchemaProps
		wantType string
		wantKeys []string
	}{
		"a list keyed by a defaulted field becomes atomic": {schema: list("port"), wantType: "atomic"},
		"a list keyed by required fields keeps its keys": {
			schema: list("port", "protocol"), wantType: "map", wantKeys: []string{"port", "protocol"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			trim(&test.schema)
			if got := *test.schema.XListType; got != test.wantType {
				t.Errorf("list type = %s, want %s", got, test.wantType)
			}
			if got := test.schema.XListMapKeys; !slices.Equal(got, test.wantKeys) {
				t.Errorf("list keys = %v, want %v", got, test.wantKeys)
			}
			if got := test.schema.Items.Schema.Properties["protocol"].Default; got != nil {
				t.Errorf("the default %s was not removed", got.Raw)
			}
		})
	}
}
