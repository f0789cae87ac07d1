//go:build integration

package charts_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/test/document"
	"github.com/slurm-operator/slurm-operator/test/integration/apiserver"
)

// The CRDs that another operator has installed are replaced with the commands of docs/migrate.md, and no custom
// resource is deleted.
func TestCRDsOfAnotherOperatorAreReplaced(t *testing.T) {
	c := startOtherCRDs(t)
	before := c.kubectl(t, "get", "controller.slinky.slurm.net/slurm", "--output=jsonpath={.metadata.uid}")

	t.Log("objects are stored in a version that ours do not have")
	if out, err := c.shell(t.Context(), "helm install slurm-operator-crds charts/slurm-operator-crds --take-ownership"); err == nil ||
		!strings.Contains(out, "v1alpha1") {
		t.Fatalf("the CRDs are not refused (%v):\n%s", err, out)
	}
	if _, err := c.shell(t.Context(), "helm uninstall slurm-operator-crds"); err != nil {
		t.Fatal(err) // the record of the failed release
	}
	c.runSection(t, "From version 1.0 or 1.1")

	t.Log("another release owns the CRDs")
	if out, err := c.shell(t.Context(), "helm install slurm-operator-crds charts/slurm-operator-crds"); err == nil ||
		!strings.Contains(out, "invalid ownership metadata") {
		t.Fatalf("Helm has adopted the CRDs without being asked to (%v):\n%s", err, out)
	}
	c.runSection(t, "Replace the CRDs")

	owner := c.kubectl(t, "get", "crd/controllers.slinky.slurm.net",
		`--output=jsonpath={.metadata.annotations.meta\.helm\.sh/release-namespace} {.status.storedVersions}`)
	if want := `default ["v1beta1"]`; owner != want {
		t.Errorf("owner and stored versions of the CRD are %q, not %q", owner, want)
	}
	after := c.kubectl(t, "get", "controller.slinky.slurm.net/slurm", "--output=jsonpath={.metadata.uid}")
	if after != before {
		t.Errorf("the Controller has the UID %q, not %q", after, before)
	}
	if out, err := c.shell(t.Context(), "helm list --namespace=slinky --short"); err != nil || out != "" {
		t.Errorf("the release of the other operator is left: %q, %v", out, err)
	}
}

// otherCRDs is an API server with CRDs that another operator has installed with Helm.
type otherCRDs struct {
	server *apiserver.Server
	// root is the root of the repository, and document the text of docs/migrate.md.
	root, document string
}

// startOtherCRDs starts a server that has served v1alpha1, and stores an object in that version.
func startOtherCRDs(t *testing.T) *otherCRDs {
	t.Helper()
	root, text := document.Read(t, "docs/migrate.md")
	c := &otherCRDs{server: apiserver.Start(t), root: root, document: text}
	chart := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(chart, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(chart, "templates"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("Chart.yaml", "{apiVersion: v2, name: slurm-operator-crds, version: 1.0.0}\n")
	install := func(stored string) {
		t.Helper()
		write("templates/crds.yaml", controllerCRD(stored))
		out, err := c.shell(t.Context(), "helm upgrade --install slurm-operator-crds "+chart+
			" --namespace=slinky --create-namespace --take-ownership")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	install("v1alpha1")
	c.kubectl(t, "create", "--raw=/apis/slinky.slurm.net/v1alpha1/namespaces/default/controllers", "--filename="+
		writeFile(t, `{"apiVersion":"slinky.slurm.net/v1alpha1","kind":"Controller","metadata":{"name":"slurm"},"spec":{}}`))
	install("v1beta1")
	return c
}

// controllerCRD returns a CRD for Controllers with two versions, of which one is stored.
func controllerCRD(stored string) string {
	var crd strings.Builder
	crd.WriteString(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: controllers.slinky.slurm.net}
spec:
  group: slinky.slurm.net
  scope: Namespaced
  names: {kind: Controller, listKind: ControllerList, plural: controllers, singular: controller}
  versions:
`)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		fmt.Fprintf(&crd, "  - {name: %s, served: true, storage: %t, "+
			"schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n", version, version == stored)
	}
	return crd.String()
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "object")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (c *otherCRDs) runSection(t *testing.T, heading string) {
	t.Helper()
	blocks := document.ShellBlocks(c.document, heading)
	if len(blocks) == 0 {
		t.Fatalf("docs/migrate.md has no shell blocks under %q", heading)
	}
	for _, block := range blocks {
		if out, err := c.shell(t.Context(), block); err != nil {
			t.Fatalf("%s: %v\n%s", block, err, out)
		}
	}
}

func (c *otherCRDs) kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := run(t.Context(), nil, c.server.Kubectl, append(arguments, "--kubeconfig="+c.server.Kubeconfig)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// shell runs a script in the root of the repository, with the server's kubectl and Helm.
func (c *otherCRDs) shell(ctx context.Context, script string) (string, error) {
	bash := exec.CommandContext(ctx, "bash", "-euc", script)
	path := filepath.Dir(c.server.Kubectl) + ":" + filepath.Dir(helmProgram) + ":" + os.Getenv("PATH")
	bash.Dir, bash.Env = c.root, append(os.Environ(), "KUBECONFIG="+c.server.Kubeconfig, "PATH="+path)
	out, err := bash.CombinedOutput()
	return string(out), err
}
