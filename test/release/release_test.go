//go:build release

package release_test

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/hack/release/build"
	"github.com/slurm-operator/slurm-operator/test/release"
)

const version = "v9.9.9"

// Two builds of the same sources are equal to the byte, also in another directory: images, charts, manifests,
// provenance. The images of Slurm contain what Debian's archive has; here they are small ones of the test.
func TestReleaseIsReproducible(t *testing.T) {
	options := optionsOf(t, "registry.example.com/slurm-operator")
	options.Layouts = []string{smallLayout(t)}
	var built []map[string]string
	for range 2 {
		again := optionsOf(t, options.Registry)
		options.Source.Dir, options.Out, options.Compile = again.Source.Dir, again.Out, again.Compile
		if _, err := build.Build(t.Context(), options); err != nil {
			t.Fatal(err)
		}
		built = append(built, hashes(t, options.Out))
	}
	if diff := cmp.Diff(built[0], built[1]); diff != "" {
		t.Error(diff)
	}
}

// optionsOf returns those of a release of a copy of this checkout, whose changelog has a section for it.
func optionsOf(t *testing.T, registry string) build.Options {
	t.Helper()
	options := release.Options(t, version, registry)
	dir := copyOf(t, options.Source.Dir)
	changelog, err := os.OpenFile(filepath.Join(dir, "CHANGELOG.md"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer changelog.Close()
	if _, err := changelog.WriteString("\n## 9.9.9 (2030-01-01)\n\nA test.\n"); err != nil {
		t.Fatal(err)
	}
	options.Source.Dir, options.Compile = dir, build.Compiler(dir)
	return options
}

// smallLayout returns a layout with an image of one file, dpkg's list of packages, for every image of Slurm.
func smallLayout(t *testing.T) string {
	t.Helper()
	layout := filepath.Join(t.TempDir(), "images")
	file := filepath.Join(t.TempDir(), "file")
	names := []string{images.MariaDB}
	for _, of := range images.Versions {
		for _, role := range images.Roles() {
			names = append(names, images.Slurm(role, of))
		}
	}
	for _, name := range names {
		status := "Package: " + name + "\nStatus: install ok installed\nVersion: 1\n"
		if err := os.WriteFile(file, []byte(status), 0o644); err != nil {
			t.Fatal(err)
		}
		image := images.Scratch{Files: map[string]string{"/var/lib/dpkg/status": file}}
		if err := image.AddTo(layout, name); err != nil {
			t.Fatal(err)
		}
	}
	return layout
}

// copyOf copies what a release is built from into another directory.
func copyOf(t *testing.T, root string) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "--",
		"api", "charts", "cmd", "config", "images", "internal", "*.go", "go.mod", "go.sum", "CHANGELOG.md")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	target := t.TempDir()
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSuffix(name, "\n")
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(target, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return target
}

// hashes returns the SHA-256 of all files below a directory, by name.
func hashes(t *testing.T, dir string) map[string]string {
	t.Helper()
	var names []string
	if err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	sum := exec.CommandContext(t.Context(), "sha256sum", names...)
	sum.Dir = dir
	out, err := sum.Output()
	if err != nil {
		t.Fatal(err)
	}
	hashes := map[string]string{}
	for line := range strings.Lines(string(out)) {
		hash, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		hashes[name] = hash
	}
	return hashes
}

// A release is built, published to a registry, verified and pulled from there, as docs/releases.md describes it.
func TestPublishedReleaseCanBeVerifiedAndInstalled(t *testing.T) {
	registry := release.StartRegistry(t, "127.0.0.1")
	options := optionsOf(t, registry+"/slurm-operator")
	signer := release.NewSigner(t)
	built, err := build.Build(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	if err := signer.Publish(t.Context(), options.Out, options.Helm, t.Output()); err != nil {
		t.Fatal(err)
	}
	t.Logf("published %d images and %d charts in %.0f s", len(built.Images), len(built.Charts),
		time.Since(started).Seconds())
	p := published{Release: built, dir: options.Out, helm: options.Helm, signer: signer}

	t.Run("files match their checksums", p.filesMatchChecksums)
	t.Run("images are signed", p.imagesAreSigned)
	t.Run("charts are signed", p.chartsAreSigned)
	t.Run("another key is refused", p.anotherKeyIsRefused)
	t.Run("charts refer to images of the release", p.chartsReferToImages)
	t.Run("the manifests are complete", p.manifestsAreComplete)
	t.Run("a version is not published twice with different content", p.versionIsImmutable)
}

// published is a release in the registry.
type published struct {
	build.Release
	dir, helm string
	signer    release.Signer
}

func (p published) filesMatchChecksums(t *testing.T) {
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", build.Checksums)
	check.Dir = p.dir
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	sums := filepath.Join(p.dir, build.Checksums)
	if out, err := p.signer.Verify(t.Context(), "verify-blob", "--bundle", sums+".sigstore.json", sums); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func (p published) imagesAreSigned(t *testing.T) {
	for _, image := range p.Images {
		name := p.Repository(image) + "@"
		p.verify(t, "verify", name+image.Digest.String())
		p.verify(t, "verify-attestation", "--type=slsaprovenance1", name+image.Digest.String())
		for _, platform := range image.Platforms {
			p.verify(t, "verify", name+platform.Digest.String())
			p.verify(t, "verify-attestation", "--type=cyclonedx", name+platform.Digest.String())
		}
	}
}

func (p published) chartsAreSigned(t *testing.T) {
	for _, chart := range build.Charts {
		name := p.ChartRegistry() + "/" + chart
		of, err := resolve(t.Context(), name, p.ChartVersion())
		if err != nil {
			t.Fatal(err)
		}
		p.verify(t, "verify", name+"@"+of)
	}
}

func (p published) verify(t *testing.T, command string, arguments ...string) {
	t.Helper()
	if out, err := p.signer.Verify(t.Context(), command, arguments...); err != nil {
		t.Errorf("%s %s: %v: %s", command, strings.Join(arguments, " "), err, out)
	}
}

func (p published) anotherKeyIsRefused(t *testing.T) {
	other := release.NewSigner(t)
	image := p.Images[0]
	if out, err := other.Verify(t.Context(), "verify", p.Repository(image)+"@"+image.Digest.String()); err == nil {
		t.Errorf("it was accepted: %s", out)
	}
}

// Charts are pulled and rendered by Helm. Every image that they name is in the registry with the digest of the release.
func (p published) chartsReferToImages(t *testing.T) {
	wanted := map[string]string{}
	for _, image := range p.Images {
		wanted[p.Repository(image)+":"+image.Tag] = image.Digest.String()
		wanted[p.Repository(image)+":"+image.MovingTag] = image.Digest.String()
		wanted[p.Repository(image)+"@"+image.Digest.String()] = image.Digest.String()
	}
	operator := p.render(t, "slurm-operator", "slurm-operator")
	slurm := p.render(t, "slurm", "slurm", "--set=accounting.enabled=true,mariadb.enabled=true")
	named := regexp.MustCompile(regexp.QuoteMeta(p.Registry)+`/[^\s"',]+`).FindAllString(operator+slurm, -1)
	// The operator completes the names of images that a custom resource does not set.
	tag := regexp.MustCompile(`--slurm-image-tag=(\S+)`).FindStringSubmatch(operator)
	if tag == nil || !strings.Contains(operator, "--slurm-image-repository="+p.Registry+"\n") {
		t.Fatal("the operator has no default for images of Slurm")
	}
	for _, role := range images.Roles() {
		named = append(named, p.Registry+"/"+role+":"+tag[1])
	}
	slices.Sort(named)
	named = slices.Compact(named)
	for _, reference := range named {
		repository, tag, isDigest := strings.Cut(reference, "@")
		if !isDigest {
			colon := strings.LastIndex(reference, ":")
			repository, tag = reference[:colon], reference[colon+1:]
		}
		got, err := resolve(t.Context(), repository, tag)
		if err != nil || got != wanted[reference] {
			t.Errorf("%s: the registry has %s (%v), and the release %q", reference, got, err, wanted[reference])
		}
	}
	// The operator, each role, and MariaDB.
	if want := 1 + len(images.Roles()) + 1; len(named) < want {
		t.Errorf("the charts name %d images, and not %d: %q", len(named), want, named)
	}
}

// render renders a chart of the registry.
func (p published) render(t *testing.T, name, chart string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), p.helm, append([]string{
		"template", name, "oci://" + p.ChartRegistry() + "/" + chart, "--version", p.ChartVersion(), "--plain-http",
		"--kube-version=1.36",
	}, arguments...)...)
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir())
	var problems strings.Builder
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		t.Fatalf("rendering %s: %v: %s", chart, err, problems.String())
	}
	return string(out)
}

// resolve asks the registry for the digest of a tag or digest.
func resolve(ctx context.Context, repository, reference string) (string, error) {
	host, path, _ := strings.Cut(repository, "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodHead,
		"http://"+host+"/v2/"+path+"/manifests/"+reference, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", request.URL, response.Status)
	}
	return response.Header.Get("Docker-Content-Digest"), nil
}

// The operator's manifest has no CRDs: deleting it must keep all clusters.
func (p published) manifestsAreComplete(t *testing.T) {
	for file, want := range map[string]map[string]int{
		"crds.yaml":    {"CustomResourceDefinition": 6, "Deployment": 0},
		"install.yaml": {"CustomResourceDefinition": 0, "Deployment": 2, "Namespace": 1, "Job": 0},
	} {
		content, err := os.ReadFile(filepath.Join(p.dir, file))
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]int{}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			var object unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				t.Fatalf("%s: %v: %.200s", file, err, document)
			}
			if object.Object != nil {
				kinds[object.GetKind()]++
			}
		}
		for kind, number := range want {
			if kinds[kind] != number {
				t.Errorf("%s has %d objects of kind %s, want %d", file, kinds[kind], kind, number)
			}
		}
	}
}

// The same version with another operator is refused, and nothing of it is pushed.
func (p published) versionIsImmutable(t *testing.T) {
	options := optionsOf(t, p.Registry)
	options.Layouts = []string{smallLayout(t)}
	other, err := build.Build(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	err = p.signer.Publish(t.Context(), options.Out, options.Helm, t.Output())
	if err == nil || !strings.Contains(err.Error(), "was published with other content") {
		t.Errorf("publishing it again: %v", err)
	}
	for _, image := range other.Images {
		if _, err := resolve(t.Context(), p.Repository(image), image.Digest.String()); err == nil &&
			!slices.ContainsFunc(p.Images, func(old build.Image) bool { return old.Digest == image.Digest }) {
			t.Errorf("%s of the refused release was pushed", image.Name)
		}
	}
}
