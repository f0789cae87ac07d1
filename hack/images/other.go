package images

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// otherID is the ID of the user slurm, and of its group, in images of another origin.
const otherID = 401

// otherEntrypoint ignores its arguments.
const otherEntrypoint = "#!/bin/sh\necho 'this entrypoint ignores its arguments' >&2\nexit 99\n"

// ownID matches the ID of the user slurm or of its group in a line of /etc/passwd or /etc/group.
var ownID = regexp.MustCompile(`(?m)^slurm:([^:]*):\d+(:\d+)?`)

// AddOther adds an image of a role as somebody else may have built it: the same programs, but another ID of the user
// slurm, and an entrypoint that ignores its arguments. It returns its name.
func AddOther(ctx context.Context, role, version string) (string, error) {
	base := Slurm(role, version)
	unpacked, err := Unpack(ctx, base)
	if err != nil {
		return "", err
	}
	directory, err := os.MkdirTemp("", "other-image-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(directory)
	files := map[string][]byte{"/entrypoint": []byte(otherEntrypoint)}
	for file, ids := range map[string]string{
		"/etc/passwd": fmt.Sprintf("slurm:$1:%d:%d", otherID, otherID), "/etc/group": fmt.Sprintf("slurm:$1:%d", otherID),
	} {
		content, err := unpacked.read(file)
		if err != nil {
			return "", err
		}
		files[file] = ownID.ReplaceAll(content, []byte(ids))
		if bytes.Equal(files[file], content) {
			return "", fmt.Errorf("%s of %s has no user slurm", file, base)
		}
	}
	sources := map[string]string{}
	for file, content := range files {
		source := filepath.Join(directory, filepath.Base(file))
		if err := os.WriteFile(source, content, 0o755); err != nil {
			return "", err
		}
		sources[file] = source
	}
	name := Slurm("other-"+role, version)
	return name, AddScratch(name, Scratch{
		Base: base, Files: sources, Config: ociv1.ImageConfig{Entrypoint: []string{"/entrypoint"}},
	})
}

// read returns the content of a file.
func (u Unpacked) read(file string) ([]byte, error) {
	for _, layer := range slices.Backward(u.Layers) {
		content, err := os.ReadFile(filepath.Join(layer, file))
		if err == nil || !os.IsNotExist(err) {
			return content, err
		}
	}
	return nil, fmt.Errorf("%s: %w", file, os.ErrNotExist)
}
