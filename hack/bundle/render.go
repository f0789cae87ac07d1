package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// name is the name of the package, and of the namespace that it suggests.
const name = "slurm-operator"

// values of the chart for an installation by OLM.
var values = map[string]any{
	// OLM issues the webhook's certificate, as cert-manager would: the webhook reads it from a directory.
	"webhook": map[string]any{"certificates": map[string]any{"managedBy": "cert-manager"}},
	// With a namespace, the chart distinguishes the permissions that the operator needs in managed namespaces from those
	// that it needs in the whole cluster, as OLM does.
	"namespaces": []any{name},
	// OLM cannot install a ValidatingAdmissionPolicy.
	"refuseForegroundDeletion": false,
}

// render returns the objects of a release of the chart, without hooks: OLM has none.
func render(operator *chart.Chart) ([]*unstructured.Unstructured, error) {
	capabilities := chartutil.DefaultCapabilities.Copy()
	// The chart does not depend on it.
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	all, err := chartutil.ToRenderValues(operator, values,
		chartutil.ReleaseOptions{Name: name, Namespace: name, Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(operator, all)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(file) != ".yaml" {
			continue // helpers and notes
		}
		found, err := parse(files[file])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, found...)
	}
	return slices.DeleteFunc(objects, isHook), nil
}

func isHook(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()["helm.sh/hook"] != ""
}

// parse returns the objects in a file.
func parse(text string) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var objects []*unstructured.Unstructured
	for {
		var content map[string]any
		err := decoder.Decode(&content)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(content) > 0 {
			objects = append(objects, &unstructured.Unstructured{Object: content})
		}
	}
}
