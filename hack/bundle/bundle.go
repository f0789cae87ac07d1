package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"helm.sh/helm/v3/pkg/chart"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// bundle is what OLM needs to know about a version of the operator.
type bundle struct {
	chart    *chart.Metadata
	install  operatorsv1alpha1.StrategyDetailsDeployment
	webhooks []operatorsv1alpha1.WebhookDescription
	crds     []crd
	// objects are the other manifests.
	objects []*unstructured.Unstructured
	// examples are custom resources, one of each type.
	examples []map[string]any
	// icon is an SVG picture.
	icon []byte
}

// crd is a CRD and the file that it is in.
type crd struct {
	apiextensionsv1.CustomResourceDefinition
	file    string
	content []byte
}

// newBundle makes the bundle of a chart, with the CRDs and samples of the repository.
func newBundle(operator *chart.Chart, repository string) (*bundle, error) {
	b := &bundle{chart: operator.Metadata}
	objects, err := render(operator)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart: %w", err)
	}
	if err := b.addObjects(objects); err != nil {
		return nil, err
	}
	if b.crds, err = readCRDs(filepath.Join(repository, "config", "crd", "bases")); err != nil {
		return nil, err
	}
	if b.examples, err = readExamples(filepath.Join(repository, "config", "samples")); err != nil {
		return nil, err
	}
	b.icon, err = os.ReadFile(filepath.Join(repository, "hack", "site", "public", "logo.svg"))
	return b, err
}

// addObjects adds the objects of the chart. An unknown type is an error: OLM might not support it.
func (b *bundle) addObjects(objects []*unstructured.Unstructured) error {
	found := newRoles()
	var bindings []*unstructured.Unstructured
	for _, object := range objects {
		var err error
		removeLabels(object)
		switch object.GetKind() {
		case "Deployment":
			var made operatorsv1alpha1.StrategyDeploymentSpec
			made, err = deployment(object)
			b.install.DeploymentSpecs = append(b.install.DeploymentSpecs, made)
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			var made []operatorsv1alpha1.WebhookDescription
			made, err = webhooks(object)
			b.webhooks = append(b.webhooks, made...)
		case "Role", "ClusterRole":
			err = found.add(object)
		case "RoleBinding", "ClusterRoleBinding":
			bindings = append(bindings, object)
		case "ConfigMap", "PodDisruptionBudget", "Service":
			b.objects = append(b.objects, object)
		case "ServiceAccount", "Certificate", "Issuer": // OLM creates them, or its own certificates
		default:
			err = fmt.Errorf("%s %s cannot be in a bundle", object.GetKind(), object.GetName())
		}
		if err != nil {
			return err
		}
	}
	for _, binding := range bindings {
		if err := found.bind(binding); err != nil {
			return err
		}
	}
	b.install.Permissions, b.install.ClusterPermissions = found.permissions(false), found.permissions(true)
	b.objects = append(b.objects, found.unbound()...)
	for _, object := range b.objects {
		object.SetNamespace("") // OLM sets it
	}
	return nil
}

// removeLabels removes the labels that say that Helm manages the object.
func removeLabels(object *unstructured.Unstructured) {
	labels := object.GetLabels()
	delete(labels, "helm.sh/chart")
	delete(labels, "app.kubernetes.io/managed-by")
	object.SetLabels(labels)
}

func readCRDs(dir string) ([]crd, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var crds []crd
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		read := crd{file: filepath.Base(file), content: content}
		if err := yaml.Unmarshal(content, &read.CustomResourceDefinition); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		crds = append(crds, read)
	}
	return crds, nil
}

// readExamples returns the first custom resource of each type in the samples, those of the smallest cluster first.
func readExamples(dir string) ([]map[string]any, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var examples []map[string]any
	have := map[string]bool{}
	for _, file := range append([]string{filepath.Join(dir, "smallest-cluster.yaml")}, files...) {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := parse(string(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, object := range objects {
			if strings.HasPrefix(object.GetAPIVersion(), "slinky.slurm.net/") && !have[object.GetKind()] {
				have[object.GetKind()] = true
				examples = append(examples, object.Object)
			}
		}
	}
	return examples, nil
}
