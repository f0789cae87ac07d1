package images

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slurm-operator/slurm-operator/hack/cache"
)

// Unpacked is an image on disk.
type Unpacked struct {
	// Layers are directories for an overlayfs mount, lowest first. Images share them, so they must not be changed.
	Layers []string
	// Config is the configuration of the image's containers.
	Config ociv1.ImageConfig
}

// Unpack unpacks the layers of an image in the layout into directories; each layer is unpacked once.
func Unpack(ctx context.Context, name string) (Unpacked, error) {
	source, err := openLayout()
	if err != nil {
		return Unpacked{}, err
	}
	image, err := source.read(name)
	if err != nil {
		return Unpacked{}, err
	}
	unpacked := Unpacked{Config: image.config.Config}
	for _, layer := range image.manifest.Layers {
		dir, err := cache.Entry(ctx, "layers", layer.Digest.Encoded(), func(ctx context.Context, dir string) error {
			root := filepath.Join(dir, "root")
			if err := os.Mkdir(root, 0o755); err != nil {
				return err
			}
			if err := run(ctx, "tar", "--extract", "--gzip", "--numeric-owner", "--directory", root, "--file",
				source.blobPath(layer.Digest)); err != nil {
				return err
			}
			return convertWhiteouts(root)
		})
		if err != nil {
			return Unpacked{}, err
		}
		unpacked.Layers = append(unpacked.Layers, filepath.Join(dir, "root"))
	}
	return unpacked, nil
}

// convertWhiteouts converts the whiteouts by which a layer deletes files of lower layers from their form in archives to
// that of overlayfs.
func convertWhiteouts(root string) error {
	const prefix, opaque = ".wh.", ".wh..wh..opq"
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(entry.Name(), prefix) {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if entry.Name() == opaque {
			if err := syscall.Setxattr(dir, "trusted.overlay.opaque", []byte("y"), 0); err != nil {
				return fmt.Errorf("marking %s opaque: %w", dir, err)
			}
			return nil
		}
		deleted := filepath.Join(dir, strings.TrimPrefix(entry.Name(), prefix))
		if err := syscall.Mknod(deleted, syscall.S_IFCHR, 0); err != nil {
			return fmt.Errorf("marking %s deleted: %w", deleted, err)
		}
		return nil
	})
}
