//go:build integration

package charts_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestHelmLintsTheCharts(t *testing.T) {
	for _, chart := range []string{"slurm-operator-crds", "slurm-operator", "slurm"} {
		for _, set := range append(sets(t, chart), "values.yaml") {
			if _, err := helm(t.Context(), read(t, chart, set), "lint", "--strict",
				filepath.Join(charts, chart)); err != nil {
				t.Errorf("%s with %s: %v", chart, set, err)
			}
		}
	}
}

// A real API server, which knows every field and every rule, accepts the rendered charts without Pod Security warnings.
func TestManifestsAreAccepted(t *testing.T) {
	prepare(t)
	for _, chart := range []string{"slurm-operator-crds", "slurm-operator", "slurm"} {
		for _, set := range append(sets(t, chart), "values.yaml") {
			t.Run(chart+"/"+set, func(t *testing.T) {
				manifests, err := render(t.Context(), chart, read(t, chart, set))
				if err != nil {
					t.Fatal(err)
				}
				output, err := apply(t.Context(), manifests)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(output, "Warning") {
					t.Error(output)
				}
			})
		}
	}
}

// prepare creates what the manifests need: namespaces, and foreign CRDs with empty schemas.
func prepare(t *testing.T) {
	t.Helper()
	var manifests strings.Builder
	manifests.WriteString(
		"{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {pod-security.kubernetes.io/warn: " +
			"restricted}}}\n")
	for _, namespace := range []string{"hpc", "lab", "leases"} {
		fmt.Fprintf(&manifests, "---\n{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n", namespace)
	}
	for kind, group := range map[string]string{"ServiceMonitor": "monitoring.coreos.com",
		"PodMonitor":     "monitoring.coreos.com",
		"PrometheusRule": "monitoring.coreos.com", "Certificate": "cert-manager.io", "Issuer": "cert-manager.io"} {
		plural := strings.ToLower(kind) + "s"
		fmt.Fprintf(&manifests, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {plural: %[1]s, kind: %[3]s}
  versions: [{name: v1, served: true, storage: true, schema: {
    openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, plural, group, kind)
	}
	if _, err := run(t.Context(), []byte(manifests.String()), server.Kubectl, "--kubeconfig="+server.Kubeconfig,
		"apply", "--server-side", "--force-conflicts", "--filename=-"); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), nil, server.Kubectl, "--kubeconfig="+server.Kubeconfig,
		"wait", "--for=condition=Established", "customresourcedefinitions", "--all"); err != nil {
		t.Fatal(err)
	}
}

// maxSecret is the size limit of a Secret.
const maxSecret = 1 << 20

// Helm stores a release with its chart in one Secret. The CRDs come close to its size limit: the test logs how close.
// They stay when their release is uninstalled, and the next release adopts them.
func TestCRDsFitIntoARelease(t *testing.T) {
	chart := filepath.Join(charts, "slurm-operator-crds")
	// The test API server already has the CRDs.
	steps := [][]string{
		{"install", "slurm-operator-crds", chart, "--take-ownership"},
		{"upgrade", "slurm-operator-crds", chart},
		{"uninstall", "slurm-operator-crds"},
		{"install", "slurm-operator-crds", chart},
	}
	for _, step := range steps {
		if _, err := helm(t.Context(), nil, step...); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := run(t.Context(), nil, server.Kubectl, "--kubeconfig="+server.Kubeconfig, "get", "secrets",
		"--selector=owner=helm,name=slurm-operator-crds", "--output=json")
	if err != nil {
		t.Fatal(err)
	}
	var secrets struct {
		Items []struct{ Data map[string][]byte }
	}
	if err := json.Unmarshal([]byte(kept), &secrets); err != nil || len(secrets.Items) != 1 {
		t.Fatalf("%d Secrets: %v", len(secrets.Items), err)
	}
	size := len(secrets.Items[0].Data["release"])
	t.Logf("the release of the CRDs has %d bytes, %d%% of the limit of a Secret", size, 100*size/maxSecret)
	if size > maxSecret*9/10 {
		t.Error("the release is close to the limit: shorten descriptions, or share schemas in the templates")
	}
}
