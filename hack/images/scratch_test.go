package images_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slurm-operator/slurm-operator/hack/images"
)

// useEmptyCache makes the test use an empty cache and returns the path of its layout.
func useEmptyCache(t *testing.T) string {
	t.Helper()
	t.Setenv("SLURM_OPERATOR_CACHE", t.TempDir())
	dir, err := images.Dir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// addTool adds an image with one program and two links to it.
func addTool(t *testing.T, name, content string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	err := images.AddScratch(name, images.Scratch{
		Files:  map[string]string{"/usr/bin/tool": program},
		Links:  map[string]string{"/bin": "usr/bin", "/usr/bin/alias": "tool"},
		Config: ociv1.ImageConfig{Entrypoint: []string{"/usr/bin/tool"}, User: "65532:65532"},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func readIndex(t *testing.T, layout string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func blobs(t *testing.T, layout string) []fs.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(layout, "blobs", "sha256"))
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestScratchImageIsReproducible(t *testing.T) {
	first := useEmptyCache(t)
	addTool(t, "devcluster/tool:1", "one")
	second := useEmptyCache(t)
	addTool(t, "devcluster/tool:1", "one")
	if a, b := readIndex(t, first), readIndex(t, second); a != b {
		t.Errorf("two images of the same content differ:\n%s\n%s", a, b)
	}
}

func TestAddScratchKeepsUnchangedImage(t *testing.T) {
	layout := useEmptyCache(t)
	addTool(t, "devcluster/tool:1", "one")
	index := filepath.Join(layout, "index.json")
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(index, long, long); err != nil {
		t.Fatal(err)
	}
	addTool(t, "devcluster/tool:1", "one")
	if info, err := os.Stat(index); err != nil || !info.ModTime().Equal(long) {
		t.Errorf("the index was written again (%v, %v)", info.ModTime(), err)
	}
}

func TestAddScratchRemovesBlobsOfReplacedImage(t *testing.T) {
	layout := useEmptyCache(t)
	addTool(t, "devcluster/tool:1", "one")
	addTool(t, "devcluster/other:1", "other")
	addTool(t, "devcluster/tool:1", "two")
	// Each of the two images has a layer, a configuration and a manifest.
	if got := len(blobs(t, layout)); got != 6 {
		t.Errorf("the layout has %d blobs, want 6", got)
	}
}

func TestUnpackReturnsFilesLinksAndConfig(t *testing.T) {
	useEmptyCache(t)
	addTool(t, "devcluster/tool:1", "one")
	image, err := images.Unpack(t.Context(), "devcluster/tool:1")
	if err != nil {
		t.Fatal(err)
	}
	if len(image.Layers) != 1 || image.Config.User != "65532:65532" {
		t.Fatalf("got %d layers and user %q", len(image.Layers), image.Config.User)
	}
	tool := filepath.Join(image.Layers[0], "usr", "bin", "alias")
	if content, err := os.ReadFile(tool); err != nil || string(content) != "one" {
		t.Errorf("the link points to %q, %v", content, err)
	}
	if info, err := os.Stat(tool); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the program has mode %v, %v", info.Mode(), err)
	}
}
