package images

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Part is an image for one architecture.
type Part struct {
	// Layout is the directory of the layout, and Name the name of the image in it.
	Layout, Name string
	// Files is a directory with the files of an image that has no Debian packages.
	Files string
}

// Combined is an image for several architectures.
type Combined struct {
	Digest digest.Digest
	// Platforms are sorted by architecture.
	Platforms []Platform
}

// Platform is a part of a combined image.
type Platform struct {
	Part

	Architecture string
	Digest       digest.Digest
}

// Combine adds an image with annotations to the layout in a directory, which it creates if there is none. The image
// consists of other images, one for each architecture. Equal arguments give images that are equal to the byte.
func Combine(dir, name string, annotations map[string]string, parts ...Part) (Combined, error) {
	target, err := openLayoutIn(dir)
	if err != nil {
		return Combined{}, err
	}
	unlock, err := target.lock()
	if err != nil {
		return Combined{}, err
	}
	defer unlock()
	var combined Combined
	descriptors := map[string]ociv1.Descriptor{} // by architecture
	for _, part := range parts {
		image, err := target.add(part)
		if err != nil {
			return Combined{}, fmt.Errorf("copying %s from %s: %w", part.Name, part.Layout, err)
		}
		architecture := image.Platform.Architecture
		if _, twice := descriptors[architecture]; twice {
			return Combined{}, fmt.Errorf("%s in %s is the second image for %s: pass one layout for each architecture",
				part.Name, part.Layout, architecture)
		}
		descriptors[architecture] = image
		combined.Platforms = append(combined.Platforms, Platform{part, architecture, image.Digest})
	}
	slices.SortFunc(combined.Platforms, func(a, b Platform) int { return cmp.Compare(a.Architecture, b.Architecture) })
	var manifests []ociv1.Descriptor
	for _, platform := range combined.Platforms {
		manifests = append(manifests, descriptors[platform.Architecture])
	}
	image, err := target.writeBlob(ociv1.MediaTypeImageIndex, ociv1.Index{
		Versioned:   specs.Versioned{SchemaVersion: 2},
		MediaType:   ociv1.MediaTypeImageIndex,
		Manifests:   manifests,
		Annotations: annotations,
	})
	if err != nil {
		return Combined{}, err
	}
	combined.Digest = image.Digest
	image.Annotations = map[string]string{ociv1.AnnotationRefName: name}
	index, err := target.index()
	if err != nil {
		return Combined{}, err
	}
	replace(&index, image)
	return combined, target.writeIndex(index)
}

// add copies the blobs of an image, and returns its descriptor with its platform.
func (l layout) add(part Part) (ociv1.Descriptor, error) {
	from := layout(part.Layout)
	image, err := from.read(part.Name)
	if err != nil {
		return ociv1.Descriptor{}, err
	}
	blobs := append([]ociv1.Descriptor{image.descriptor, image.manifest.Config}, image.manifest.Layers...)
	for i := range blobs {
		target := l.blobPath(blobs[i].Digest)
		if _, err := os.Stat(target); err == nil {
			continue
		}
		if err := copyBlob(target, from.blobPath(blobs[i].Digest)); err != nil {
			return ociv1.Descriptor{}, err
		}
	}
	return ociv1.Descriptor{
		MediaType: image.descriptor.MediaType,
		Digest:    image.descriptor.Digest,
		Size:      image.descriptor.Size,
		Platform:  &image.config.Platform,
	}, nil
}

// copyBlob copies a file, which gets its name when it is complete.
func copyBlob(target, source string) error {
	partial := target + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := copyFile(partial, source); err != nil {
		return err
	}
	return os.Rename(partial, target)
}

// WriteBill writes the SBOM (CycloneDX) of the image into a file, under the name that the image is released with. It
// reads the layers without unpacking them, which would need root.
func (p Part) WriteBill(file, name string) error {
	if p.Files != "" {
		bill, err := billOf(name, []string{p.Files})
		if err != nil {
			return err
		}
		return writeJSON(file, bill)
	}
	source := layout(p.Layout)
	image, err := source.read(p.Name)
	if err != nil {
		return err
	}
	bill := emptyBill(name)
	for _, layer := range slices.Backward(image.manifest.Layers) {
		found, err := source.readLayer(layer.Digest, dpkgStatus, func(status io.Reader) error {
			bill.Components, err = debianPackages(status, isInstalled)
			return err
		})
		if err != nil {
			return fmt.Errorf("layer %s of %s: %w", layer.Digest, p.Name, err)
		}
		if found {
			return writeJSON(file, bill)
		}
	}
	return fmt.Errorf("%s has no list of Debian packages", p.Name)
}

// readLayer calls read with a file in a layer, and reports whether there is one.
func (l layout) readLayer(layer digest.Digest, name string, read func(io.Reader) error) (found bool, err error) {
	blob, err := os.Open(l.blobPath(layer))
	if err != nil {
		return false, err
	}
	defer blob.Close()
	uncompressed, err := gzip.NewReader(blob)
	if err != nil {
		return false, err
	}
	archive := tar.NewReader(uncompressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if path.Clean(header.Name) == name {
			return true, read(archive)
		}
	}
}
