package machine

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/hack/cache"
	"github.com/slurm-operator/slurm-operator/hack/images"
)

// diskSize is the size of a disk; unused space takes none.
const diskSize = "4G"

// Disk returns a disk with an image and programs of the host, by their path in the machine. It is built once.
func Disk(ctx context.Context, image images.Unpacked, programs map[string]string) (string, error) {
	programs = maps.Clone(programs)
	programs[busybox] = "/bin/busybox"
	parts := slices.Clone(image.Layers)
	for _, path := range slices.Sorted(maps.Keys(programs)) {
		content, err := os.ReadFile(programs[path])
		if err != nil {
			return "", err
		}
		parts = append(parts, path, string(content))
	}
	own := ownFiles()
	for _, path := range slices.Sorted(maps.Keys(own)) {
		parts = append(parts, path, own[path])
	}
	entry, err := cache.Entry(ctx, "disks", cache.Key(parts...), func(ctx context.Context, dir string) error {
		return makeDisk(ctx, dir, image.Layers, programs)
	})
	return filepath.Join(entry, "disk"), err
}

// makeDisk writes a filesystem with the merged layers. They are mounted in a namespace that ends with the command.
func makeDisk(ctx context.Context, dir string, layers []string, programs map[string]string) error {
	upper := filepath.Join(dir, "upper")
	for path, content := range ownFiles() {
		if err := write(filepath.Join(upper, path), []byte(content)); err != nil {
			return err
		}
	}
	for path, source := range programs {
		content, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(upper, path), content); err != nil {
			return err
		}
	}
	lower := slices.Clone(layers)
	slices.Reverse(lower) // overlayfs expects the uppermost first
	const script = `
mkdir merged
mount -t overlay -o "lowerdir=upper:$1" overlay merged
mkfs.ext4 -q -F -O ^has_journal -E lazy_itable_init=1 -d merged disk "$2"
`
	command := exec.CommandContext(ctx, "unshare", "--mount", "sh", "-euc", script, "sh", strings.Join(lower, ":"),
		diskSize)
	command.Dir = dir
	return run(command)
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o755)
}

func run(command *exec.Cmd) error {
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", command.Path, err, output.String())
	}
	return nil
}
