package publish_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/hack/release/build"
	"github.com/slurm-operator/slurm-operator/hack/release/publish"
)

// startRegistry returns the prefix of images in a registry.
func startRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/slurm-operator"
}

// writeRelease writes a release with one image, whose program has a content, and returns its options and the digests.
func writeRelease(t *testing.T, prefix, content string) (publish.Options, build.Image) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	part := images.Part{Layout: filepath.Join(t.TempDir(), "layout"), Name: "slurmd"}
	program := images.Scratch{Files: map[string]string{"/slurmd": write("slurmd", content, 0o755)}, Architecture: "amd64"}
	if err := program.AddTo(part.Layout, part.Name); err != nil {
		t.Fatal(err)
	}
	combined, err := images.Combine(filepath.Join(dir, build.Layout), "slurmd:26.05-v1.0.0", nil, part)
	if err != nil {
		t.Fatal(err)
	}
	image := build.Image{
		Name: "slurmd", Tag: "26.05-v1.0.0", MovingTag: "26.05", Digest: combined.Digest, Provenance: "provenance.json",
		Platforms: []build.Platform{{Architecture: "amd64", Digest: combined.Platforms[0].Digest, SBOM: "bill.json"}},
	}
	encoded, err := json.Marshal(build.Release{Version: "v1.0.0", Registry: prefix, Images: []build.Image{image}})
	if err != nil {
		t.Fatal(err)
	}
	write(build.Metadata, string(encoded), 0o644)
	write(image.Provenance, `{"predicate": {"a": "b"}}`, 0o644)
	write(build.Checksums, "", 0o644)
	// In place of cosign: it writes down what it would sign, and the predicate.
	cosign := write("cosign", fmt.Sprintf(`#!/bin/sh -e
echo "$@" | sed 's,/[^ ]*predicate-[^ ]*,PREDICATE,; s,%[1]s,DIR,g' >>%[1]s/signed
case "$*" in *slsa*) cat $(echo "$*" | grep --only-matching '[^ ]*predicate-[^ ]*') >>%[1]s/predicate ;; esac
`, dir), 0o755)
	return publish.Options{
		Dir: dir, PlainHTTP: true, Cosign: cosign, SignFlags: []string{"--key=KEY"}, Log: t.Output(),
	}, image
}

func readFile(t *testing.T, options publish.Options, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(options.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestImagesArePushedSignedAndAttested(t *testing.T) {
	prefix := startRegistry(t)
	options, image := writeRelease(t, prefix, "one")
	if err := publish.Publish(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{image.Tag, image.MovingTag} {
		if got := resolve(t, prefix, image.Name, tag); got != image.Digest.String() {
			t.Errorf("the tag %s is on %s, want %s", tag, got, image.Digest)
		}
	}
	name, platform := prefix+"/slurmd@"+image.Digest.String(), prefix+"/slurmd@"+image.Platforms[0].Digest.String()
	want := []string{
		"sign --yes --key=KEY --allow-http-registry --recursive " + name,
		"attest --yes --key=KEY --allow-http-registry --type slsaprovenance1 --predicate PREDICATE " + name,
		"attest --yes --key=KEY --allow-http-registry --type cyclonedx --predicate DIR/bill.json " + platform,
		"sign-blob --yes --key=KEY --bundle DIR/checksums.txt.sigstore.json DIR/checksums.txt",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(readFile(t, options, "signed")), "\n")); diff != "" {
		t.Error(diff)
	}
	if predicate := readFile(t, options, "predicate"); predicate != `{"a": "b"}` {
		t.Errorf("the predicate of the provenance is %s", predicate)
	}
}

func TestReleaseCanBePublishedAgain(t *testing.T) {
	options, _ := writeRelease(t, startRegistry(t), "one")
	for range 2 {
		if err := publish.Publish(t.Context(), options); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVersionIsNotPublishedWithOtherContent(t *testing.T) {
	prefix := startRegistry(t)
	options, image := writeRelease(t, prefix, "one")
	if err := publish.Publish(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	other, _ := writeRelease(t, prefix, "two")
	err := publish.Publish(t.Context(), other)
	if err == nil || !strings.Contains(err.Error(), "was published with other content") {
		t.Errorf("got %v", err)
	}
	if got := resolve(t, prefix, image.Name, image.MovingTag); got != image.Digest.String() {
		t.Errorf("the refused release moved a tag to %s", got)
	}
}

// resolve asks the registry for the digest of a tag.
func resolve(t *testing.T, prefix, image, tag string) string {
	t.Helper()
	host, path, _ := strings.Cut(prefix, "/")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodHead,
		fmt.Sprintf("http://%s/v2/%s/%s/manifests/%s", host, path, image, tag), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.Header.Get("Docker-Content-Digest")
}
