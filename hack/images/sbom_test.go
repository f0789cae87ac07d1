package images

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSBOMListsDebianPackages(t *testing.T) {
	lower, upper := t.TempDir(), t.TempDir()
	write(t, filepath.Join(lower, "var/lib/dpkg/status"), "Package: old\nStatus: install ok installed\nVersion: 1\n")
	write(t, filepath.Join(upper, "var/lib/dpkg/status"), `Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2:2.41-1+b1
Description: a library
 Version: not this one

Package: removed
Status: deinstall ok config-files
Version: 3
`)
	got, err := billOf("slurm-operator/slurmd:26.05", []string{lower, upper})
	if err != nil {
		t.Fatal(err)
	}
	want := bill{
		Format: "CycloneDX", Version: "1.6", Revision: 1,
		Metadata: subject{component{Type: "container", Name: "slurm-operator/slurmd", Version: "26.05"}},
		Components: []component{
			{
				Type: "library", Name: "libc6", Version: "2:2.41-1+b1",
				URL: "pkg:deb/debian/libc6@2%3A2.41-1%2Bb1?arch=amd64",
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSBOMListsGoModules(t *testing.T) {
	layer := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(layer, "slurm-operator"),
		"../../cmd/slurm-operator")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got, err := billOf("slurm-operator/slurm-operator:dev", []string{layer})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"stdlib", "sigs.k8s.io/controller-runtime"} {
		if !slices.ContainsFunc(got.Components, func(c component) bool { return c.Name == want && c.Version != "" }) {
			t.Errorf("%s is missing from %v", want, got.Components)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
