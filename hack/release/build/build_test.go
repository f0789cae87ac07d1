package build

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
)

var update = flag.Bool("update", false, "write the golden files")

func TestVersionAndRegistryAreChecked(t *testing.T) {
	for name, test := range map[string]struct{ version, registry, want string }{
		"a release":                     {"v0.1.0", "registry.example.com/slurm-operator", ""},
		"a prerelease":                  {"v0.2.0-rc.1", "registry.example.com/slurm-operator", ""},
		"a registry with a port":        {"v0.1.0", "localhost:5000/a/b", ""},
		"a version without v":           {"0.1.0", "registry.example.com/slurm-operator", "is not a version"},
		"a version with a leading zero": {"v0.01.0", "registry.example.com/slurm-operator", "is not a version"},
		"a commit":                      {"v0.1.0-3-gabc+dirty", "registry.example.com/slurm-operator", "is not a version"},
		"no registry":                   {"v0.1.0", "", "set REGISTRY"},
		"a registry without a path":     {"v0.1.0", "registry.example.com", "set REGISTRY"},
		"a URL":                         {"v0.1.0", "https://registry.example.com/a", "set REGISTRY"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Options{Version: test.version, Registry: test.registry, Architectures: []string{"amd64"}}.check()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestValuesAreSetInPlace(t *testing.T) {
	const text = `# image: in a comment
image:
  # -- Repository.
  repository: old
  tag: "" # none
other:
  image:
    repository: kept
`
	got, err := setValues(text, map[string]string{"image.repository": "new", "image.tag": "v1"})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("repository: old", `repository: "new"`, `tag: "" # none`, `tag: "v1"`).Replace(text)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := setValues(text, map[string]string{"image.digest": "new"}); err == nil {
		t.Error("a value that does not exist was set")
	}
}

// Helm writes the current time into archives, in an order of its own.
func TestNormalizedArchivesAreEqual(t *testing.T) {
	first := archive(t, time.Unix(1, 0), "slurm/Chart.yaml", "slurm/values.yaml", "slurm/README.md")
	second := archive(t, time.Unix(2, 0), "slurm/Chart.yaml", "slurm/README.md", "slurm/values.yaml")
	at := time.Unix(1700000000, 0)
	one, err := normalize(first, at)
	if err != nil {
		t.Fatal(err)
	}
	other, err := normalize(second, at)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, other) {
		t.Error("they differ")
	}
	uncompressed, err := gzip.NewReader(bytes.NewReader(one))
	if err != nil {
		t.Fatal(err)
	}
	header, err := tar.NewReader(uncompressed).Next()
	if err != nil || header.Name != "slurm/Chart.yaml" || !header.ModTime.Equal(at) {
		t.Errorf("the first file is %+v, %v", header, err)
	}
}

// archive packs files whose content is their name.
func archive(t *testing.T, at time.Time, names ...string) []byte {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	out := tar.NewWriter(compressed)
	for _, name := range names {
		if err := out.WriteHeader(&tar.Header{Name: name, Size: int64(len(name)), ModTime: at}); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func TestChangelogSections(t *testing.T) {
	const changelog = "# Changelog\n\n## Unreleased\n\n- next\n\n" +
		"## 0.2.0 (2027-01-01)\n\n### Added\n\n- two\n\n## 0.1.0 (2026-12-01)\n\n- one\n"
	for version, want := range map[string]string{
		"0.2.0": "### Added\n\n- two\n", "0.1.0": "- one\n", "0.3.0": "", "0.1": "",
	} {
		if got, found := changesOf(changelog, version); got != want || found != (want != "") {
			t.Errorf("%s: got %q (%v), want %q", version, got, found, want)
		}
	}
}

func TestProvenance(t *testing.T) {
	b := &build{
		Options: Options{
			Version: "v0.1.0", Registry: "registry.example.com/slurm-operator", Out: t.TempDir(),
			Builder: "https://example.com/builder", Source: Source{Commit: strings.Repeat("c", 40)},
		},
		release: Release{Registry: "registry.example.com/slurm-operator"},
	}
	if err := os.WriteFile(b.path("bill.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	statement, err := b.statement(Image{
		Name: "slurmctld", Tag: "26.05-v0.1.0", Digest: digest.FromString("all"),
		Platforms: []Platform{{Architecture: "amd64", Digest: digest.FromString("amd64"), SBOM: "bill.json"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	statement.Predicate.Run.Builder.Version["go"] = "1.2.3"
	got, err := json.MarshalIndent(statement, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "provenance.json")
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Error(diff)
	}
}

// The operator's image of a release is written without a builder, and must be what the Dockerfile describes.
func TestOperatorImageMatchesItsDockerfile(t *testing.T) {
	dockerfile, err := os.ReadFile("../../../images/operator/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, stage, _ := strings.Cut(string(dockerfile), "FROM scratch AS prebuilt\n")
	stage, _, _ = strings.Cut(stage, "\n\n")
	image := operatorScratch("amd64", "program")
	entrypoint, err := json.Marshal(image.Config.Entrypoint)
	if err != nil {
		t.Fatal(err)
	}
	described := "COPY slurm-operator /slurm-operator\nUSER " + image.Config.User + "\nENTRYPOINT " + string(entrypoint)
	if diff := cmp.Diff(stage, described); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"/slurm-operator": "program"}, image.Files); diff != "" {
		t.Error(diff)
	}
}

func TestTextsOfChartsReferToTheRelease(t *testing.T) {
	b := &build{Options: Options{Version: "v0.1.0"}, release: Release{Version: "v0.1.0", Registry: "example.com/a"}}
	got, err := b.relocate("See [x](../../docs/x.md).\n\n  helm install slurm charts/slurm --wait\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "See [x](" + home + "/blob/v0.1.0/docs/x.md).\n\n" +
		"  helm install slurm oci://example.com/a/charts/slurm --version 0.1.0 --wait\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestChartsAreAnnotatedForArtifactHub(t *testing.T) {
	b := &build{
		Options: Options{Source: Source{Dir: "../../.."}},
		release: Release{Version: "v0.1.0-rc.1", Registry: "example.com/a", Images: []Image{
			{Name: "slurm-operator", Tag: "v0.1.0-rc.1", Platforms: []Platform{{Architecture: "arm64"}}},
			{Name: "slurmctld", Tag: "26.05-v0.1.0-rc.1"},
			{Name: "slurmctld", Tag: "24.11-v0.1.0-rc.1"},
		}},
	}
	for chart, want := range map[string][]string{
		"slurm-operator-crds": {`artifacthub.io/prerelease: "true"`, "name: nodesets.slinky.slurm.net", "kind: Token"},
		"slurm-operator":      {"image: example.com/a/slurm-operator:v0.1.0-rc.1", "linux/arm64"},
		"slurm":               {"image: example.com/a/slurmctld:26.05-v0.1.0-rc.1"},
	} {
		text, err := os.ReadFile(filepath.Join("../../../charts", chart, "Chart.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.annotate(string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range want {
			if !strings.Contains(got, line) {
				t.Errorf("%s has no %q:\n%s", chart, line, got)
			}
		}
		if strings.Contains(got, "24.11") || chart != "slurm-operator" && strings.Contains(got, "a/slurm-operator:") {
			t.Errorf("%s lists an image that it does not use:\n%s", chart, got)
		}
	}
}
