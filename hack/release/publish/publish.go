// Package publish pushes a release to the registry that it was built for, and signs it.
//
// Images come first, each with its signature and its attestations (provenance and SBOMs), then the charts, which refer
// to them: a chart is never there before its images are. The tags of a version never move: if the registry has one with
// other content, nothing is pushed. Publishing the same release again completes what was interrupted, and signs again.
//
// cosign signs: with a key, or without one, with the identity of the workflow that runs it.
package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/opencontainers/go-digest"
	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/slurm-operator/slurm-operator/hack/release/build"
)

// chartMediaType is the type of a chart's archive in a registry.
const chartMediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// Options say how a release is published.
type Options struct {
	// Dir is the directory of the release.
	Dir string
	// PlainHTTP is for a registry without TLS.
	PlainHTTP bool
	// Cosign is the path of cosign, and SignFlags are its flags for every signature.
	Cosign    string
	SignFlags []string
	// Helm is the path of helm.
	Helm string
	Log  io.Writer
}

// Publish publishes a release. The credentials are those of docker login.
func Publish(ctx context.Context, options Options) error {
	release, err := build.Read(options.Dir)
	if err != nil {
		return err
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return err
	}
	layout, err := oci.NewFromFS(ctx, os.DirFS(filepath.Join(options.Dir, build.Layout)))
	if err != nil {
		return err
	}
	p := &publisher{
		Options: options, release: release, layout: layout,
		client: &auth.Client{
			Client: retry.DefaultClient, Cache: auth.NewCache(), Credential: credentials.Credential(store),
		},
	}
	if err := p.checkTags(ctx); err != nil {
		return err
	}
	for _, image := range release.Images {
		if err := p.image(ctx, image); err != nil {
			return fmt.Errorf("publishing %s: %w", image.LayoutName(), err)
		}
		fmt.Fprintf(options.Log, "published %s:%s@%s\n", release.Repository(image), image.Tag, image.Digest)
	}
	for i, chart := range release.Charts {
		if err := p.chart(ctx, build.Charts[i], chart); err != nil {
			return fmt.Errorf("publishing %s: %w", chart, err)
		}
		fmt.Fprintf(options.Log, "published oci://%s/%s\n", release.ChartRegistry(), build.Charts[i])
	}
	sums := filepath.Join(options.Dir, build.Checksums)
	return p.cosign(ctx, "sign-blob", "--bundle", sums+".sigstore.json", sums)
}

// publisher is the state of Publish.
type publisher struct {
	Options
	release build.Release
	layout  *oci.ReadOnlyStore
	client  *auth.Client
	// pushed maps the digests of layers to a repository that has them.
	pushed sync.Map
}

func (p *publisher) repository(name string) (*remote.Repository, error) {
	repository, err := remote.NewRepository(name)
	if err != nil {
		return nil, err
	}
	repository.Client, repository.PlainHTTP = p.client, p.PlainHTTP
	return repository, nil
}

// checkTags returns an error if a tag of this version has other content in the registry.
func (p *publisher) checkTags(ctx context.Context) error {
	for _, image := range p.release.Images {
		found, err := p.resolve(ctx, p.release.Repository(image), image.Tag)
		if err != nil {
			return err
		}
		if err := compare(p.release.Repository(image)+":"+image.Tag, found.Digest, image.Digest); err != nil {
			return err
		}
	}
	for i, chart := range p.release.Charts {
		archive, err := os.ReadFile(filepath.Join(p.Dir, chart))
		if err != nil {
			return err
		}
		name := p.release.ChartRegistry() + "/" + build.Charts[i]
		found, err := p.publishedChart(ctx, name)
		if err != nil {
			return err
		}
		if err := compare(name+":"+p.release.ChartVersion(), found, digest.FromBytes(archive)); err != nil {
			return err
		}
	}
	return nil
}

func compare(name string, published, built digest.Digest) error {
	if published != "" && published != built {
		return fmt.Errorf("%s was published with other content (%s, and this is %s): choose another VERSION",
			name, published, built)
	}
	return nil
}

// resolve returns what a tag points to; nothing if there is no such tag.
func (p *publisher) resolve(ctx context.Context, name, tag string) (ociv1.Descriptor, error) {
	repository, err := p.repository(name)
	if err != nil {
		return ociv1.Descriptor{}, err
	}
	found, err := repository.Resolve(ctx, tag)
	if errors.Is(err, errdef.ErrNotFound) {
		return ociv1.Descriptor{}, nil
	}
	return found, err
}

// publishedChart returns the digest of the archive of a chart in this version, if the registry has one.
func (p *publisher) publishedChart(ctx context.Context, name string) (digest.Digest, error) {
	found, err := p.resolve(ctx, name, p.release.ChartVersion())
	if err != nil || found.Digest == "" {
		return "", err
	}
	repository, err := p.repository(name)
	if err != nil {
		return "", err
	}
	encoded, err := content.FetchAll(ctx, repository, found)
	if err != nil {
		return "", err
	}
	var manifest ociv1.Manifest
	if err := json.Unmarshal(encoded, &manifest); err != nil {
		return "", err
	}
	for _, layer := range manifest.Layers {
		if layer.MediaType == chartMediaType {
			return layer.Digest, nil
		}
	}
	return "", fmt.Errorf("%s is not a chart", name)
}

// image pushes and signs an image. Its moving tag is set last, when everything about the image is there.
func (p *publisher) image(ctx context.Context, image build.Image) error {
	repository, err := p.repository(p.release.Repository(image))
	if err != nil {
		return err
	}
	if err := p.push(ctx, repository, image); err != nil {
		return err
	}
	name := p.release.Repository(image) + "@"
	if err := p.cosign(ctx, "sign", "--recursive", name+image.Digest.String()); err != nil {
		return err
	}
	if err := p.attestProvenance(ctx, name+image.Digest.String(), image.Provenance); err != nil {
		return err
	}
	for _, platform := range image.Platforms {
		if err := p.cosign(ctx, "attest", "--type", "cyclonedx", "--predicate", filepath.Join(p.Dir, platform.SBOM),
			name+platform.Digest.String()); err != nil {
			return err
		}
	}
	if image.MovingTag == "" {
		return nil
	}
	_, err = oras.Tag(ctx, repository, image.Tag, image.MovingTag)
	return err
}

// push copies an image from the layout. Images share layers: a layer that another repository of the registry has is
// mounted from there, and not uploaded again.
func (p *publisher) push(ctx context.Context, repository *remote.Repository, image build.Image) error {
	remember := func(_ context.Context, blob ociv1.Descriptor) error {
		p.pushed.Store(blob.Digest, repository.Reference.Repository)
		return nil
	}
	options := oras.CopyOptions{CopyGraphOptions: oras.CopyGraphOptions{
		PostCopy: remember, OnMounted: remember,
		MountFrom: func(_ context.Context, blob ociv1.Descriptor) ([]string, error) {
			if from, found := p.pushed.Load(blob.Digest); found {
				return []string{from.(string)}, nil
			}
			return nil, nil
		},
	}}
	pushed, err := oras.Copy(ctx, p.layout, image.LayoutName(), repository, image.Tag, options)
	if err == nil && pushed.Digest != image.Digest {
		err = fmt.Errorf("the layout has %s, and release.json %s: build the release again", pushed.Digest, image.Digest)
	}
	return err
}

// attestProvenance signs the predicate of a provenance file: cosign adds the rest of the statement.
func (p *publisher) attestProvenance(ctx context.Context, image, file string) error {
	encoded, err := os.ReadFile(filepath.Join(p.Dir, file))
	if err != nil {
		return err
	}
	var statement struct {
		Predicate json.RawMessage `json:"predicate"`
	}
	if err := json.Unmarshal(encoded, &statement); err != nil {
		return err
	}
	predicate, err := os.CreateTemp("", "predicate-*.json")
	if err != nil {
		return err
	}
	defer os.Remove(predicate.Name())
	_, err = predicate.Write(statement.Predicate)
	if err := errors.Join(err, predicate.Close()); err != nil {
		return err
	}
	return p.cosign(ctx, "attest", "--type", "slsaprovenance1", "--predicate", predicate.Name(), image)
}

// chart pushes and signs a chart.
func (p *publisher) chart(ctx context.Context, name, archive string) error {
	name = p.release.ChartRegistry() + "/" + name
	switch published, err := p.publishedChart(ctx, name); {
	case err != nil:
		return err
	case published == "":
		arguments := []string{"push", filepath.Join(p.Dir, archive), "oci://" + p.release.ChartRegistry()}
		if p.PlainHTTP {
			arguments = append(arguments, "--plain-http")
		}
		if err := run(ctx, p.Helm, arguments...); err != nil {
			return err
		}
	}
	chart, err := p.resolve(ctx, name, p.release.ChartVersion())
	if err != nil {
		return err
	}
	return p.cosign(ctx, "sign", name+"@"+chart.Digest.String())
}

// cosign signs with cosign.
func (p *publisher) cosign(ctx context.Context, command string, arguments ...string) error {
	all := append([]string{command, "--yes"}, p.SignFlags...)
	if p.PlainHTTP && command != "sign-blob" {
		all = append(all, "--allow-http-registry")
	}
	return run(ctx, p.Cosign, append(all, arguments...)...)
}

func run(ctx context.Context, program string, arguments ...string) error {
	var output bytes.Buffer
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(program), arguments[0], err, output.String())
	}
	return nil
}
