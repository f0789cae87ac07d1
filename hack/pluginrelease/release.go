package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/plugin/command"
)

// platforms are those that a release has.
var platforms = []string{
	"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64",
}

// name is the name of the program, as kubectl expects it.
const name = "kubectl-slurm"

// A release is what is built, and how.
type release struct {
	version, baseURL, homepage string
	// root is the directory of the repository.
	root string
	// modified is the time of the files in archives.
	modified time.Time
	// build builds the program for a platform.
	build func(ctx context.Context, system, architecture, to string) error
}

// An archive is one that was written.
type archive struct{ system, architecture, file, sum string }

// write writes the archives for some platforms, their checksums, and the manifest for krew.
func (r *release) write(ctx context.Context, out string, wanted []string) error {
	shared, err := r.sharedFiles()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(out, "krew"), 0o755); err != nil {
		return err
	}
	archives := make([]archive, 0, len(wanted))
	for _, platform := range wanted {
		if !slices.Contains(platforms, platform) {
			return fmt.Errorf("unknown platform %q; use %s", platform, strings.Join(platforms, ", "))
		}
		written, err := r.writeArchive(ctx, out, platform, shared)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		archives = append(archives, written)
	}
	var sums strings.Builder
	for _, each := range archives {
		fmt.Fprintf(&sums, "%s  %s\n", each.sum, each.file)
	}
	checksums := filepath.Join(out, fmt.Sprintf("%s_%s_checksums.txt", name, r.version))
	if err := os.WriteFile(checksums, []byte(sums.String()), 0o644); err != nil {
		return err
	}
	manifest, err := r.manifest(archives)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "krew", "slurm.yaml"), manifest, 0o644)
}

// writeArchive builds the program for a platform and packs it.
func (r *release) writeArchive(ctx context.Context, out, platform string, shared []file) (archive, error) {
	system, architecture, _ := strings.Cut(platform, "/")
	directory, err := os.MkdirTemp("", "pluginrelease-")
	if err != nil {
		return archive{}, err
	}
	defer os.RemoveAll(directory)
	built := filepath.Join(directory, name)
	if err := r.build(ctx, system, architecture, built); err != nil {
		return archive{}, err
	}
	content, err := os.ReadFile(built)
	if err != nil {
		return archive{}, err
	}
	pack, extension := tarGzip, "tar.gz"
	files := slices.Concat([]file{{program(system), content, true}}, shared)
	if system == windows {
		pack, extension = zipped, "zip"
		files = slices.DeleteFunc(files, func(each file) bool { return each.name == completer })
	}
	packed, err := pack(files, r.modified)
	if err != nil {
		return archive{}, err
	}
	sum := sha256.Sum256(packed)
	written := archive{
		system: system, architecture: architecture, sum: hex.EncodeToString(sum[:]),
		file: fmt.Sprintf("%s_%s_%s_%s.%s", name, r.version, system, architecture, extension),
	}
	return written, os.WriteFile(filepath.Join(out, written.file), packed, 0o644)
}

const windows = "windows"

// program returns the name of the program's file.
func program(system string) string {
	if system == windows {
		return name + ".exe"
	}
	return name
}

// completer is the program by which kubectl completes arguments. It is a shell script.
const completer = "kubectl_complete-slurm"

// sharedFiles returns the files that all archives have.
func (r *release) sharedFiles() ([]file, error) {
	var files []file
	for _, each := range []struct {
		path, name string
		executable bool
	}{{"LICENSE", "LICENSE", false}, {"cmd/kubectl-slurm/" + completer, completer, true}} {
		content, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(each.path)))
		if err != nil {
			return nil, err
		}
		files = append(files, file{each.name, content, each.executable})
	}
	scripts, err := completions(command.New(r.version))
	if err != nil {
		return nil, err
	}
	return slices.Concat(files, scripts, manPages(command.New(r.version), r.version)), nil
}

// goBuild returns the function that builds the program, with the flags of the Makefile.
func goBuild(root, version string) func(ctx context.Context, system, architecture, to string) error {
	return func(ctx context.Context, system, architecture, to string) error {
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
			"-ldflags=-s -w -X main.version="+version, "-o", to, "./cmd/kubectl-slurm")
		build.Dir = root
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("go build: %w", err)
		}
		return nil
	}
}
