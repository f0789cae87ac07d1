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
	own := ownCluster(t)
	registry := release.StartRegistry(t, network.HostAddress)
	for _, node := range own.Nodes {
		if err := node.UseRegistry(registry); err != nil {
			t.Fatal(err)
		}
	}
	built := publishRelease(t, registry)
	root, readme := document.Read(t, "README.md")
	removeEverything(t)
	t.Cleanup(func() { removeEverything(t) })
	inCheckout := regexp.MustCompile(` charts/(slurm[a-z-]*)`)
	fromRegistry := " oci://" + built.ChartRegistry() + "/$1 --version " + built.ChartVersion() + " --plain-http"
	var last string
	for _, command := range quickstart(readme) {
		command = inCheckout.ReplaceAllString(command, fromRegistry)
		shell := exec.CommandContext(t.Context(), "bash", "-c", command)
		shell.Dir = root
		out, err := shell.CombinedOutput()
		if err != nil {
			clusterNamespace.Describe(t)
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		last = string(out)
	}
	if !strings.Contains(last, "worker-0") {
		t.Errorf("srun hostname printed %q", last)
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

// publishRelease builds and publishes a release, and verifies the signatures of all images.
func publishRelease(t *testing.T, registry string) build.Release {
	t.Helper()
	options := release.Options(t, "v0.0.0-e2e", registry+"/slurm-operator")
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
