// Package build builds a release into a directory: images, charts, manifests, SBOMs, provenance, checksums.
//
// Everything is made from one commit and one version, and carries no time but that of the commit: two builds of the
// same commit with the same version of Go are equal to the byte, except for the images of Slurm, which contain what
// Debian's archive has on that day. The images are kept in an OCI image layout, so that a release needs no registry
// until it is published. The charts name the registry and pin the operator's image by digest, which is why both are
// decided here and not when the release is published.
package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"
)

// Names in the directory of a release.
const (
	Layout    = "images"
	Metadata  = "release.json"
	Checksums = "checksums.txt"
)

// Options describe a release.
type Options struct {
	// Version is a semantic version with the prefix v.
	Version string
	// Registry is the prefix of the names of images: registry.example.com/slurm-operator.
	Registry string
	// Out is the directory of the release. Files that are already there become part of the release.
	Out string
	// Source is what the release is built from.
	Source Source
	// Architectures are those of the operator's image.
	Architectures []string
	// Layouts are the directories with images of Slurm, one for each architecture.
	Layouts []string
	// Builder is a URI that identifies who builds, in the provenance.
	Builder string
	// Compile writes the operator for an architecture into a file.
	Compile func(ctx context.Context, version, architecture, output string) error
	// Helm is the path of helm.
	Helm string
	Log  io.Writer
}

// Release is the content of a release, as it is in release.json.
type Release struct {
	Version  string   `json:"version"`
	Registry string   `json:"registry"`
	Commit   string   `json:"commit"`
	Images   []Image  `json:"images"`
	Charts   []string `json:"charts"`
}

// Image is an image of a release.
type Image struct {
	// Name is the last part of its repository, and the prefix of its files.
	Name string `json:"name"`
	// Tag never moves to another image.
	Tag string `json:"tag"`
	// MovingTag is on the image of the newest release, if it is set.
	MovingTag string `json:"movingTag,omitempty"`
	// Digest is that of the image for all architectures.
	Digest digest.Digest `json:"digest"`
	// Platforms are the images for one architecture each.
	Platforms []Platform `json:"platforms"`
	// Provenance is the file with its provenance.
	Provenance string `json:"provenance"`
}

// Platform is an image for one architecture.
type Platform struct {
	Architecture string        `json:"architecture"`
	Digest       digest.Digest `json:"digest"`
	// SBOM is the file with its SBOM.
	SBOM string `json:"sbom"`
}

// LayoutName is the name of the image in the layout of a release.
func (i Image) LayoutName() string { return i.Name + ":" + i.Tag }

// Repository is the repository of an image in the registry.
func (r Release) Repository(image Image) string { return r.Registry + "/" + image.Name }

// ChartRegistry is the prefix of the repositories of charts. A chart and an image have the same name.
func (r Release) ChartRegistry() string { return r.Registry + "/charts" }

// ChartVersion is the version of the charts.
func (r Release) ChartVersion() string { return strings.TrimPrefix(r.Version, "v") }

// Prerelease reports whether the release is not meant for production.
func (r Release) Prerelease() bool { return strings.Contains(r.Version, "-") }

// Read reads what the release in a directory contains.
func Read(dir string) (Release, error) {
	content, err := os.ReadFile(filepath.Join(dir, Metadata))
	if err != nil {
		return Release{}, fmt.Errorf("reading a release (build one with make release): %w", err)
	}
	var read Release
	return read, json.Unmarshal(content, &read)
}

// Build builds a release.
func Build(ctx context.Context, options Options) (Release, error) {
	if err := options.check(); err != nil {
		return Release{}, err
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return Release{}, err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(options.Out, 0o755); err != nil {
		return Release{}, err
	}
	b := &build{Options: options, work: work, release: Release{
		Version: options.Version, Registry: options.Registry, Commit: options.Source.Commit,
	}}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"the image of the operator", b.operator},
		{"the images of Slurm", b.slurm},
		{"the provenance", b.provenance},
		{"the charts", b.charts},
		{"the manifests", b.manifests},
		{"the release notes", b.notes},
		{"the checksums", b.finish},
	} {
		if err := step.run(ctx); err != nil {
			return Release{}, fmt.Errorf("building %s: %w", step.name, err)
		}
		fmt.Fprintln(options.Log, "built", step.name)
	}
	return b.release, nil
}

// build is the state of Build.
type build struct {
	Options
	work    string // a directory for intermediate results
	release Release
}

var (
	// semantic matches the versions of releases. Build metadata (+…) is not allowed in tags of images.
	semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)
	// repository matches a registry and a path in it.
	repository = regexp.MustCompile(`^[a-z0-9.-]+(:\d+)?(/[a-z0-9._-]+)+$`)
)

func (o Options) check() error {
	switch {
	case !semantic.MatchString(o.Version):
		return fmt.Errorf("%q is not a version: set VERSION to one such as v0.1.0 or v0.2.0-rc.1", o.Version)
	case !repository.MatchString(o.Registry):
		return fmt.Errorf("%q is not a registry and a path in it: set REGISTRY to where the release will be published, "+
			"such as registry.example.com/slurm-operator", o.Registry)
	case len(o.Architectures) == 0:
		return errors.New("a release needs at least one architecture")
	}
	return nil
}

// path returns the path of a file of the release.
func (b *build) path(name string) string { return filepath.Join(b.Out, name) }

// writeJSON writes a file of the release.
func (b *build) writeJSON(name string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.path(name), append(content, '\n'), 0o644)
}
