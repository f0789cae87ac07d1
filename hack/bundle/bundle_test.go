package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/manifests"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/api/pkg/validation/errors"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// TestBundle checks the bundle of the chart in this repository, as OLM reads it. It is made once, because the CRDs are
// large.
func TestBundle(t *testing.T) {
	read := load(t)
	for name, check := range map[string]func(*testing.T, *manifests.Bundle){
		"is valid": checkValid,
		"lets the operator manage the namespaces of the OperatorGroup": checkNamespaces,
		"gives the webhook the certificate of OLM":                     checkWebhook,
		"has nothing that Helm manages":                                checkLabels,
	} {
		t.Run(name, func(t *testing.T) { check(t, read) })
	}
}

// load makes a bundle, and reads it.
func load(t *testing.T) *manifests.Bundle {
	t.Helper()
	operator, err := loader.Load("../../charts/slurm-operator")
	if err != nil {
		t.Fatal(err)
	}
	made, err := newBundle(operator, "../..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := made.files()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := write(dir, files); err != nil {
		t.Fatal(err)
	}
	read, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func checkValid(t *testing.T, read *manifests.Bundle) {
	t.Helper()
	// Not those that are deprecated, or for package manifests, the older format.
	validators := slices.Concat(validation.DefaultBundleValidators, interfaces.Validators{
		validation.ObjectValidator, validation.OperatorGroupValidator, validation.OperatorHubV2Validator,
		validation.StandardCapabilitiesValidator, validation.StandardCategoriesValidator,
		validation.AlphaDeprecatedAPIsValidator, validation.GoodPracticesValidator,
	})
	for _, result := range validators.Validate(read.ObjectsToValidate()...) {
		for _, found := range slices.Concat(result.Errors, result.Warnings) {
			if !accepted(found) {
				t.Errorf("%s: %v", result.Name, found)
			}
		}
	}
}

// accepted reports whether a finding of the validators is known: as with Helm, the administrator sets the resources of
// the operator (docs/sizing.md).
func accepted(found errors.Error) bool {
	return strings.Contains(found.Error(), "unable to find the resource requests for the container")
}

func TestPrereleasesAreInAnotherChannel(t *testing.T) {
	for version, want := range map[string]string{"0.1.0": "stable", "0.2.0-rc.1": "candidate"} {
		made := bundle{chart: &chart.Metadata{Version: version}}
		if got := made.channel(); got != want {
			t.Errorf("the channel of %s is %s, want %s", version, got, want)
		}
	}
}

// OLM passes the namespaces of the OperatorGroup in an annotation of the pods. The permissions in managed namespaces
// are apart from those in the cluster, so that OLM can grant them in these namespaces only.
func checkNamespaces(t *testing.T, read *manifests.Bundle) {
	t.Helper()
	spec := read.CSV.Spec
	for _, mode := range spec.InstallModes {
		if !mode.Supported {
			t.Errorf("%s is not supported", mode.Type)
		}
	}
	install := spec.InstallStrategy.StrategySpec
	for _, deployment := range install.DeploymentSpecs {
		container := deployment.Spec.Template.Spec.Containers[0]
		if !slices.Contains(container.Args, "--namespaces=$(WATCH_NAMESPACE)") {
			t.Errorf("%s has the arguments %q", deployment.Name, container.Args)
		}
		variable := container.Env[len(container.Env)-1]
		if variable.Name != "WATCH_NAMESPACE" ||
			variable.ValueFrom.FieldRef.FieldPath != "metadata.annotations['olm.targetNamespaces']" {
			t.Errorf("%s has the variable %+v", deployment.Name, variable)
		}
	}
	if resources := resources(install.ClusterPermissions); resources["secrets"] || !resources["nodes"] {
		t.Errorf("permissions in the cluster: %v", slices.Sorted(maps.Keys(resources)))
	}
	if resources := resources(install.Permissions); !resources["secrets"] || !resources["leases"] || resources["nodes"] {
		t.Errorf("permissions in namespaces: %v", slices.Sorted(maps.Keys(resources)))
	}
}

func resources(permissions []operatorsv1alpha1.StrategyDeploymentPermissions) map[string]bool {
	found := map[string]bool{}
	for _, permission := range permissions {
		for _, rule := range permission.Rules {
			for _, resource := range rule.Resources {
				found[resource] = true
			}
		}
	}
	return found
}

func checkWebhook(t *testing.T, read *manifests.Bundle) {
	t.Helper()
	spec := read.CSV.Spec
	var types []string
	for _, webhook := range spec.WebhookDefinitions {
		types = append(types, string(webhook.Type)+" "+webhook.GenerateName)
		if webhook.DeploymentName != "slurm-operator-webhook" || *webhook.FailurePolicy != "Ignore" {
			t.Errorf("%s of %s has the failure policy %s", webhook.GenerateName, webhook.DeploymentName, *webhook.FailurePolicy)
		}
	}
	slices.Sort(types)
	want := []string{"MutatingAdmissionWebhook bindings.slinky.slurm.net"}
	for _, kind := range []string{"accountings", "controllers", "loginsets", "nodesets", "restapis", "tokens"} {
		want = append(want, "ValidatingAdmissionWebhook "+kind+".slinky.slurm.net")
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	deployments := spec.InstallStrategy.StrategySpec.DeploymentSpecs
	at := slices.IndexFunc(deployments, func(deployment operatorsv1alpha1.StrategyDeploymentSpec) bool {
		return deployment.Name == "slurm-operator-webhook"
	})
	if at < 0 {
		t.Fatal("the bundle has no Deployment of the webhook")
	}
	pod := deployments[at].Spec.Template.Spec
	if !slices.Contains(pod.Containers[0].Args, "--certificate-directory=/tmp/k8s-webhook-server/serving-certs") {
		t.Errorf("the webhook has the arguments %q", pod.Containers[0].Args)
	}
	for _, volume := range pod.Volumes {
		if volume.Secret != nil {
			t.Errorf("the webhook waits for the Secret %s, which nothing creates", volume.Secret.SecretName)
		}
	}
}

func checkLabels(t *testing.T, read *manifests.Bundle) {
	t.Helper()
	for _, deployment := range read.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if deployment.Label["helm.sh/chart"] != "" {
			t.Errorf("the Deployment %s has the labels %v", deployment.Name, deployment.Label)
		}
	}
	for _, object := range read.Objects {
		if object.GetKind() == "CustomResourceDefinition" || object.GetKind() == "ClusterServiceVersion" {
			continue
		}
		if object.GetNamespace() != "" || object.GetLabels()["helm.sh/chart"] != "" {
			t.Errorf("%s %s has the namespace %q and the labels %v", object.GetKind(), object.GetName(),
				object.GetNamespace(), object.GetLabels())
		}
	}
}
