package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slurm-operator/slurm-operator/hack/images"
)

// operatorImage is the name of the operator's image, and of its program.
const operatorImage = "slurm-operator"

// Compiler returns a function that compiles the operator in a directory. Flags that would change the result are all set
// here, so that the environment does not matter. Without VCS information, an archive of the sources gives the same
// program as a clone.
func Compiler(dir string) func(ctx context.Context, version, architecture, output string) error {
	return func(ctx context.Context, version, architecture, output string) error {
		command := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w -X main.version="+version, "-o", output,
			"./cmd/slurm-operator")
		command.Dir = dir
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture, "GOAMD64=v1",
			"GOARM64=v8.0", "GOEXPERIMENT=", "GOFLAGS=-trimpath -buildvcs=false -gcflags=all=-dwarf=false")
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("compiling the operator for %s: %w\n%s", architecture, err, out)
		}
		return nil
	}
}

// operatorScratch describes the operator's image: the same as the target prebuilt of its Dockerfile, but written
// without a builder, for any architecture.
func operatorScratch(architecture, program string) images.Scratch {
	return images.Scratch{
		Files:        map[string]string{"/" + operatorImage: program},
		Config:       ociv1.ImageConfig{User: "65532:65532", Entrypoint: []string{"/" + operatorImage}},
		Architecture: architecture,
	}
}

// operator adds the operator's image.
func (b *build) operator(ctx context.Context) error {
	var parts []images.Part
	for _, architecture := range b.Architectures {
		files := filepath.Join(b.work, architecture, "files")
		program := filepath.Join(files, operatorImage)
		if err := os.MkdirAll(files, 0o755); err != nil {
			return err
		}
		if err := b.Compile(ctx, b.Version, architecture, program); err != nil {
			return err
		}
		if err := os.Chmod(program, 0o755); err != nil { // whatever the umask is
			return err
		}
		part := images.Part{Layout: filepath.Join(b.work, architecture, "layout"), Name: operatorImage, Files: files}
		if err := operatorScratch(architecture, program).AddTo(part.Layout, part.Name); err != nil {
			return err
		}
		parts = append(parts, part)
	}
	return b.add(Image{Name: operatorImage, Tag: b.Version}, parts)
}

// slurm adds the images of Slurm and of MariaDB, from all layouts. Those of Slurm also get the tag of their Slurm
// version.
func (b *build) slurm(context.Context) error {
	if len(b.Layouts) == 0 {
		return errors.New("no layout with images of Slurm")
	}
	parts := func(name string) []images.Part {
		var parts []images.Part
		for _, layout := range b.Layouts {
			parts = append(parts, images.Part{Layout: layout, Name: name})
		}
		return parts
	}
	for _, version := range images.Versions {
		for _, role := range images.Roles() {
			image := Image{Name: role, Tag: version + "-" + b.Version}
			if !b.release.Prerelease() {
				image.MovingTag = version
			}
			if err := b.add(image, parts(images.Slurm(role, version))); err != nil {
				return err
			}
		}
	}
	return b.add(Image{Name: "mariadb", Tag: b.Version}, parts(images.MariaDB))
}

// add adds an image to the release, with an SBOM for each architecture.
func (b *build) add(image Image, parts []images.Part) error {
	combined, err := images.Combine(b.path(Layout), image.LayoutName(), map[string]string{
		ociv1.AnnotationSource: home, ociv1.AnnotationRevision: b.Source.Commit, ociv1.AnnotationVersion: image.Tag,
		ociv1.AnnotationCreated: b.Source.Time.Format(time.RFC3339),
	}, parts...)
	if err != nil {
		return err
	}
	image.Digest = combined.Digest
	image.Provenance = fileName(image, "intoto.json")
	for _, part := range combined.Platforms {
		platform := Platform{
			Architecture: part.Architecture,
			Digest:       part.Digest,
			SBOM:         fileName(image, part.Architecture+".cdx.json"),
		}
		if err := part.WriteBill(b.path(platform.SBOM), image.LayoutName()); err != nil {
			return err
		}
		image.Platforms = append(image.Platforms, platform)
	}
	b.release.Images = append(b.release.Images, image)
	return nil
}

// fileName returns the name of a file about an image.
func fileName(image Image, suffix string) string {
	return image.Name + "-" + image.Tag + "." + suffix
}
