package images_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slurm-operator/slurm-operator/hack/images"
)

// addPart adds an image for an architecture to a new layout.
func addPart(t *testing.T, architecture string) images.Part {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte(architecture), 0o755); err != nil {
		t.Fatal(err)
	}
	part := images.Part{Layout: t.TempDir(), Name: "tool"}
	image := images.Scratch{Files: map[string]string{"/tool": program}, Architecture: architecture}
	if err := image.AddTo(part.Layout, part.Name); err != nil {
		t.Fatal(err)
	}
	return part
}

func TestCombinedImageHasOnePartForEachArchitecture(t *testing.T) {
	dir := t.TempDir()
	combined, err := images.Combine(dir, "tool:1", map[string]string{"a": "b"}, addPart(t, "arm64"), addPart(t, "amd64"))
	if err != nil {
		t.Fatal(err)
	}
	var layout, image ociv1.Index
	decode(t, filepath.Join(dir, "index.json"), &layout)
	if len(layout.Manifests) != 1 || layout.Manifests[0].Digest != combined.Digest ||
		layout.Manifests[0].Annotations[ociv1.AnnotationRefName] != "tool:1" {
		t.Errorf("the index is %+v", layout)
	}
	decode(t, filepath.Join(dir, "blobs", "sha256", combined.Digest.Encoded()), &image)
	if image.Annotations["a"] != "b" {
		t.Errorf("the annotations are %v", image.Annotations)
	}
	var architectures []string
	for i, part := range image.Manifests {
		architectures = append(architectures, part.Platform.OS+"/"+part.Platform.Architecture)
		if returned := combined.Platforms[i]; returned.Architecture != part.Platform.Architecture ||
			returned.Digest != part.Digest {
			t.Errorf("the image has %+v, and %+v was returned", part, returned)
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, architectures); diff != "" {
		t.Error(diff)
	}
	// The index, and a layer, a configuration and a manifest of each part.
	if got := len(blobs(t, dir)); got != 7 {
		t.Errorf("the layout has %d blobs, want 7", got)
	}
}

func TestCombinedImageIsReproducible(t *testing.T) {
	var layouts []map[string]string
	for range 2 {
		dir := t.TempDir()
		annotations := map[string]string{"a": "b", "c": "d"}
		if _, err := images.Combine(dir, "tool:1", annotations, addPart(t, "amd64"), addPart(t, "arm64")); err != nil {
			t.Fatal(err)
		}
		layouts = append(layouts, files(t, dir))
	}
	if diff := cmp.Diff(layouts[0], layouts[1]); diff != "" {
		t.Error(diff)
	}
}

func TestCombineRefusesTwoImagesForOneArchitecture(t *testing.T) {
	_, err := images.Combine(t.TempDir(), "tool:1", nil, addPart(t, "amd64"), addPart(t, "amd64"))
	if err == nil || !strings.Contains(err.Error(), "second image for amd64") {
		t.Errorf("got %v", err)
	}
}

// The uppermost list of packages counts.
func TestBillOfAPartListsDebianPackages(t *testing.T) {
	dir := t.TempDir()
	status := filepath.Join(dir, "status")
	layout := filepath.Join(dir, "layout")
	for _, image := range []struct{ name, base string }{{"base", ""}, {"tool", "base"}} {
		text := "Package: lib" + image.name + "\nStatus: install ok installed\nArchitecture: arm64\nVersion: 1\n"
		if err := os.WriteFile(status, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		scratch := images.Scratch{Base: image.base, Files: map[string]string{"/var/lib/dpkg/status": status}}
		if err := scratch.AddTo(layout, image.name); err != nil {
			t.Fatal(err)
		}
	}
	bill := filepath.Join(dir, "bill.json")
	if err := (images.Part{Layout: layout, Name: "tool"}).WriteBill(bill, "tool:1"); err != nil {
		t.Fatal(err)
	}
	var got struct{ Components []struct{ PURL string } }
	decode(t, bill, &got)
	if len(got.Components) != 1 || got.Components[0].PURL != "pkg:deb/debian/libtool@1?arch=arm64" {
		t.Errorf("the bill lists %+v", got.Components)
	}
}

// files returns the content of all files below a directory, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	content := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(os.DirFS(dir), path)
		content[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func decode(t *testing.T, path string, into any) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}
