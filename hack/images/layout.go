package images

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slurm-operator/slurm-operator/hack/cache"
)

// keyAnnotation is the annotation with the key of an image's sources.
const keyAnnotation = "slurm-operator/key"

var errNotFound = errors.New("no such image")

// layout is an OCI image layout: a directory of blobs and an index of the images. The index is replaced atomically
// after its blobs are written, so readers need no lock.
type layout string

// openLayout returns the layout in the cache, and creates an empty one if there is none.
func openLayout() (layout, error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	return openLayoutIn(dir)
}

// openLayoutIn returns the layout in a directory, and creates an empty one if there is none.
func openLayoutIn(dir string) (layout, error) {
	l := layout(dir)
	if _, err := os.Stat(filepath.Join(dir, ociv1.ImageIndexFile)); err == nil {
		return l, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := l.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(dir, ociv1.ImageIndexFile)); err == nil {
		return l, nil
	}
	if err := os.MkdirAll(filepath.Dir(l.blobPath(digest.FromString(""))), 0o755); err != nil {
		return "", err
	}
	if err := writeJSON(filepath.Join(dir, ociv1.ImageLayoutFile),
		ociv1.ImageLayout{Version: ociv1.ImageLayoutVersion}); err != nil {
		return "", err
	}
	return l, l.writeIndex(ociv1.Index{})
}

// lock takes an exclusive lock for changing the layout.
func (l layout) lock() (unlock func(), err error) {
	return cache.Lock(string(l) + ".lock")
}

func (l layout) blobPath(of digest.Digest) string {
	return filepath.Join(string(l), ociv1.ImageBlobsDir, of.Algorithm().String(), of.Encoded())
}

func (l layout) index() (ociv1.Index, error) {
	var index ociv1.Index
	content, err := os.ReadFile(filepath.Join(string(l), ociv1.ImageIndexFile))
	if err != nil {
		return index, err
	}
	return index, json.Unmarshal(content, &index)
}

func (l layout) writeIndex(index ociv1.Index) error {
	index.Versioned = specs.Versioned{SchemaVersion: 2}
	index.MediaType = ociv1.MediaTypeImageIndex
	slices.SortFunc(index.Manifests, func(a, b ociv1.Descriptor) int {
		return bytes.Compare([]byte(nameOf(a)), []byte(nameOf(b)))
	})
	return writeJSON(filepath.Join(string(l), ociv1.ImageIndexFile), index)
}

func nameOf(image ociv1.Descriptor) string { return image.Annotations[ociv1.AnnotationRefName] }

// find returns the index's entry for an image name.
func (l layout) find(name string) (ociv1.Descriptor, error) {
	index, err := l.index()
	if err != nil {
		return ociv1.Descriptor{}, err
	}
	at := slices.IndexFunc(index.Manifests, func(image ociv1.Descriptor) bool { return nameOf(image) == name })
	if at < 0 {
		return ociv1.Descriptor{}, fmt.Errorf("%s: %w", name, errNotFound)
	}
	return index.Manifests[at], nil
}

// layersOf returns the layers of an image, and the digests of their content; none if the name is empty.
func (l layout) layersOf(name string) (layers []ociv1.Descriptor, diffIDs []digest.Digest, err error) {
	if name == "" {
		return nil, nil, nil
	}
	image, err := l.read(name)
	return image.manifest.Layers, image.config.RootFS.DiffIDs, err
}

// singleImage is an image for one architecture.
type singleImage struct {
	descriptor ociv1.Descriptor
	manifest   ociv1.Manifest
	config     ociv1.Image
}

// read returns the content of an image.
func (l layout) read(name string) (singleImage, error) {
	descriptor, err := l.find(name)
	if err != nil {
		return singleImage{}, err
	}
	image := singleImage{descriptor: descriptor}
	if err := l.readBlob(descriptor.Digest, &image.manifest); err != nil {
		return singleImage{}, err
	}
	return image, l.readBlob(image.manifest.Config.Digest, &image.config)
}

// readBlob decodes a JSON blob.
func (l layout) readBlob(of digest.Digest, into any) error {
	content, err := os.ReadFile(l.blobPath(of))
	if err != nil {
		return err
	}
	return json.Unmarshal(content, into)
}

// writeBlob stores a value as JSON.
func (l layout) writeBlob(mediaType string, value any) (ociv1.Descriptor, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return ociv1.Descriptor{}, err
	}
	blob := ociv1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	return blob, writeFile(l.blobPath(blob.Digest), content)
}

// merge moves the images of another layout on the same filesystem into this one, with a key, and removes the images
// that they replace. The caller holds the lock.
func (l layout) merge(from layout, key string) error {
	added, err := from.index()
	if err != nil {
		return err
	}
	blobs, err := filepath.Glob(filepath.Join(string(from), ociv1.ImageBlobsDir, "sha256", "*"))
	if err != nil {
		return err
	}
	for _, blob := range blobs {
		if err := os.Rename(blob,
			l.blobPath(digest.NewDigestFromEncoded(digest.SHA256, filepath.Base(blob)))); err != nil {
			return err
		}
	}
	return l.put(key, added.Manifests...)
}

// put adds images to the index; their blobs must exist. The caller holds the lock.
func (l layout) put(key string, images ...ociv1.Descriptor) error {
	index, err := l.index()
	if err != nil {
		return err
	}
	for _, image := range images {
		image.Annotations[keyAnnotation] = key
		replace(&index, image)
	}
	if err := l.writeIndex(index); err != nil {
		return err
	}
	return l.collect(index)
}

// replace adds an image to an index, and removes the one that had its name.
func replace(index *ociv1.Index, image ociv1.Descriptor) {
	index.Manifests = slices.DeleteFunc(index.Manifests,
		func(old ociv1.Descriptor) bool { return nameOf(old) == nameOf(image) })
	index.Manifests = append(index.Manifests, image)
}

// collect removes the blobs that no image in the index uses.
func (l layout) collect(index ociv1.Index) error {
	used := map[string]bool{}
	for _, image := range index.Manifests {
		var manifest ociv1.Manifest
		if err := l.readBlob(image.Digest, &manifest); err != nil {
			return err
		}
		used[l.blobPath(image.Digest)] = true
		used[l.blobPath(manifest.Config.Digest)] = true
		for _, layer := range manifest.Layers {
			used[l.blobPath(layer.Digest)] = true
		}
	}
	blobs, err := filepath.Glob(filepath.Join(string(l), ociv1.ImageBlobsDir, "sha256", "*"))
	if err != nil {
		return err
	}
	for _, blob := range blobs {
		if !used[blob] {
			if err := os.Remove(blob); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, content)
}

// writeFile writes a file atomically.
func writeFile(path string, content []byte) error {
	partial := path + ".partial"
	if err := os.WriteFile(partial, content, 0o644); err != nil {
		return err
	}
	return os.Rename(partial, path)
}
