package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/slurm-operator/slurm-operator/test/debian"
)

// Every module comes once, and after all that it depends on.
func TestModulesAreLoadedInOrder(t *testing.T) {
	depends := map[string][]string{
		"pci": {"ring", "virtio"}, "virtio": {"ring"}, "net": {"failover", "virtio"}, "ring": nil, "failover": {"builtin"},
	}
	files := map[string]string{}
	for name := range depends {
		files[name] = name
	}
	got, err := inOrder([]string{"pci", "net", "builtin"}, files,
		func(file string) ([]string, error) { return depends[file], nil })
	if want := []string{"ring", "virtio", "pci", "failover", "net"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
}

// After an update of the kernel, the archive no longer has the package that the lists of this computer name.
func TestKernelIsDownloadedWithStaleLists(t *testing.T) {
	kernel := func(version string) (meta, image debian.Package) {
		name := "linux-image-" + version + "-cloud-amd64"
		return debian.Package{Name: "linux-image-cloud-amd64", Version: version, Depends: name + " (= " + version + ")"},
			debian.Package{Name: name, Version: version, Files: map[string]string{
				"boot/vmlinuz-" + version: version, "lib/modules/" + version + "/ext4.ko": "",
			}}
	}
	archive := debian.Archive(t.TempDir())
	archive.Use(t, "stable")
	meta, image := kernel("6.1")
	image.Files = nil
	archive.Publish(t, "stable", meta, image)
	if err := run(exec.CommandContext(t.Context(), "apt-get", "update")); err != nil {
		t.Fatal(err)
	}
	meta, image = kernel("6.2")
	archive.Publish(t, "stable", meta, image)
	dir := t.TempDir()
	if err := downloadKernel(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"vmlinuz": "6.2", "version": "linux-image-6.2-cloud-amd64 6.2\n"} {
		if content, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(content) != want {
			t.Errorf("%s has %q, %v, want %q", file, content, err, want)
		}
	}
}
