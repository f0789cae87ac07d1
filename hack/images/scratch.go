package images

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slurm-operator/slurm-operator/hack/cache"
)

// Scratch describes an image that contains only a few files, or adds them to another image.
type Scratch struct {
	// Base is the name of the image that the files are added to; empty if there is none.
	Base string
	// Files maps absolute paths in the image to local files. Their permissions are kept; they are owned by root.
	Files map[string]string
	// Links maps absolute paths in the image to the targets of symbolic links.
	Links map[string]string
	// Config is the configuration of the image's containers.
	Config ociv1.ImageConfig
	// Architecture is that of the files; this computer's if it is empty.
	Architecture string
}

// AddScratch adds an image to the layout in the cache with a name, unless it is already there with the same content.
// Equal descriptions give images that are equal to the byte.
func AddScratch(name string, image Scratch) error {
	dir, err := Dir()
	if err != nil {
		return err
	}
	return image.AddTo(dir, name)
}

// AddTo does the same as AddScratch with the layout in a directory, which it creates if there is none.
func (s Scratch) AddTo(dir, name string) error {
	target, err := openLayoutIn(dir)
	if err != nil {
		return err
	}
	key, err := s.key(target)
	if err != nil {
		return err
	}
	if old, err := target.find(name); err == nil && old.Annotations[keyAnnotation] == key {
		return nil
	} else if err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	unlock, err := target.lock()
	if err != nil {
		return err
	}
	defer unlock()
	manifest, err := s.write(target)
	if err != nil {
		return fmt.Errorf("writing image %s: %w", name, err)
	}
	manifest.Annotations = map[string]string{ociv1.AnnotationRefName: name}
	return target.put(key, manifest)
}

func (s Scratch) key(target layout) (string, error) {
	base, _, err := target.layersOf(s.Base)
	if err != nil {
		return "", err
	}
	parts := []string{fmt.Sprint(base), fmt.Sprint(s.Links), fmt.Sprintf("%+v", s.Config), s.Architecture}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		key, err := cache.KeyOfTree(s.Files[name])
		if err != nil {
			return "", err
		}
		parts = append(parts, name, key)
	}
	return cache.Key(parts...), nil
}

// write stores the image's blobs and returns its manifest's descriptor.
func (s Scratch) write(target layout) (ociv1.Descriptor, error) {
	var layer bytes.Buffer
	compressed := gzip.NewWriter(&layer)
	uncompressed := digest.SHA256.Digester()
	if err := s.writeLayer(io.MultiWriter(compressed, uncompressed.Hash())); err != nil {
		return ociv1.Descriptor{}, err
	}
	if err := compressed.Close(); err != nil {
		return ociv1.Descriptor{}, err
	}
	layerBlob := ociv1.Descriptor{
		MediaType: ociv1.MediaTypeImageLayerGzip,
		Digest:    digest.FromBytes(layer.Bytes()),
		Size:      int64(layer.Len()),
	}
	if err := writeFile(target.blobPath(layerBlob.Digest), layer.Bytes()); err != nil {
		return ociv1.Descriptor{}, err
	}
	layers, diffIDs, err := target.layersOf(s.Base)
	if err != nil {
		return ociv1.Descriptor{}, err
	}
	config, err := target.writeBlob(ociv1.MediaTypeImageConfig, ociv1.Image{
		Platform: ociv1.Platform{Architecture: cmp.Or(s.Architecture, runtime.GOARCH), OS: "linux"},
		Config:   s.Config,
		RootFS:   ociv1.RootFS{Type: "layers", DiffIDs: append(diffIDs, uncompressed.Digest())},
	})
	if err != nil {
		return ociv1.Descriptor{}, err
	}
	return target.writeBlob(ociv1.MediaTypeImageManifest, ociv1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ociv1.MediaTypeImageManifest,
		Config:    config,
		Layers:    append(layers, layerBlob),
	})
}

// writeLayer writes a tar archive in a fixed order and with fixed timestamps.
func (s Scratch) writeLayer(to io.Writer) error {
	archive := tar.NewWriter(to)
	entries := map[string]func() error{}
	for name, source := range s.Files {
		entries[name] = func() error { return addFile(archive, name, source) }
	}
	for name, link := range s.Links {
		entries[name] = func() error {
			return archive.WriteHeader(&tar.Header{
				Typeflag: tar.TypeSymlink, Name: relative(name), Linkname: link, Mode: 0o777,
			})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			if entries[dir] == nil {
				entries[dir] = func() error {
					return archive.WriteHeader(&tar.Header{
						Typeflag: tar.TypeDir, Name: relative(dir) + "/", Mode: 0o755,
					})
				}
			}
		}
	}
	// A directory sorts before its contents.
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if err := entries[name](); err != nil {
			return err
		}
	}
	return archive.Close()
}

func addFile(archive *tar.Writer, name, source string) error {
	file, err := os.Open(source)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: relative(name), Mode: int64(info.Mode().Perm()), Size: info.Size(),
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, file)
	return err
}

func relative(name string) string { return strings.TrimPrefix(name, "/") }
