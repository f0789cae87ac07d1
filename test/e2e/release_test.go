//go:build e2e

package e2e_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/release/build"
	"github.com/slurm-operator/slurm-operator/test/cluster/network"
	"github.com/slurm-operator/slurm-operator/test/document"
	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
	"github.com/slurm-operator/slurm-operator/test/release"
)

// TestRelease builds a release, publishes it to a registry, verifies its signatures, and runs the commands of the
// README's quickstart with the charts from there. The nodes have no other source of its images.
func TestRelease(t *testing.T) {
	built := publishRelease(t, startRegistry(t), "v0.0.0-e2e")
	_, readme := document.Read(t, "README.md")
	removeEverything(t)
	t.Cleanup(func() { removeEverything(t) })
	if printed := installRelease(t, built, readme, ""); !strings.Contains(printed, "worker-0") {
		t.Errorf("srun hostname printed %q", printed)
	}
	for _, namespace := range []kube.Namespace{operatorNamespace, clusterNamespace} {
		images := namespace.MustRun(t, "get", "pods", "--output",
			"jsonpath={.items[*].spec['initContainers','containers'][*].image}")
		for image := range strings.FieldsSeq(images) {
			if !strings.HasPrefix(image, built.Registry+"/") {
				t.Errorf("a pod in namespace %s has the image %s", namespace.Name, image)
			}
		}
	}
}

// startRegistry starts a registry that the nodes of the test cluster pull from, and returns its address.
func startRegistry(t *testing.T) string {
	t.Helper()
	own := ownCluster(t)
	registry := release.StartRegistry(t, network.HostAddress)
	for _, node := range own.Nodes {
		if err := node.UseRegistry(registry); err != nil {
			t.Fatal(err)
		}
	}
	return registry
}

// publishRelease builds and publishes a release of this checkout, and verifies the signatures of all images.
func publishRelease(t *testing.T, registry, version string) build.Release {
	t.Helper()
	options := release.Options(t, version, registry+"/slurm-operator")
	built, err := build.Build(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	signer := release.NewSigner(t)
	if err := signer.Publish(t.Context(), options.Out, options.Helm, t.Output()); err != nil {
		t.Fatal(err)
	}
	for _, image := range built.Images {
		if out, err := signer.Verify(t.Context(), "verify",
			built.Repository(image)+"@"+image.Digest.String()); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return built
}

// installRelease runs the commands of a README's quickstart with the charts of a release and additional flags for the
// Slurm cluster, and returns what the last command printed.
func installRelease(t *testing.T, release build.Release, readme, flags string) string {
	t.Helper()
	var last string
	for _, command := range quickstart(readme) {
		if strings.HasPrefix(command, "helm install slurm ") {
			command += flags
		}
		last = runWithRelease(t, release, command)
	}
	return last
}

// checkoutCharts matches a chart in a command of the documentation.
var checkoutCharts = regexp.MustCompile(` charts/(slurm[a-z-]*)`)

// runWithRelease runs a command of the documentation with the charts of a release instead of those of the checkout.
func runWithRelease(t *testing.T, release build.Release, command string) string {
	t.Helper()
	root, _ := document.Read(t, "README.md")
	command = checkoutCharts.ReplaceAllString(command,
		" oci://"+release.ChartRegistry()+"/$1 --version "+release.ChartVersion()+" --plain-http")
	shell := exec.CommandContext(t.Context(), "bash", "-c", command)
	shell.Dir = root
	out, err := shell.CombinedOutput()
	if err != nil {
		clusterNamespace.Describe(t)
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}
