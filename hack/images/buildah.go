package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/hack/cache"
)

// baseImage is the name of the Debian base in the temporary store.
const baseImage = "localhost/debian"

// build builds the images of the group with buildah, in a separate store, and moves them into the layout.
func (g *group) build(ctx context.Context, log io.Writer, target layout) error {
	work, err := os.MkdirTemp(filepath.Dir(string(target)), "images-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	store := store(work)

	// A copy of the context, to add files from elsewhere.
	source := filepath.Join(work, "context")
	if err := os.CopyFS(source, os.DirFS(g.context)); err != nil {
		return err
	}
	for name, path := range g.files {
		if err := copyFile(filepath.Join(source, name), path); err != nil {
			return err
		}
	}
	args := []string{}
	for _, name := range slices.Sorted(maps.Keys(g.args)) {
		args = append(args, "--build-arg", name+"="+g.args[name])
	}
	if g.suite != "" {
		if err := store.addBase(ctx, log, g.suite); err != nil {
			return err
		}
		args = append(args, "--build-arg", "BASE="+baseImage)
	}
	staging := layout(filepath.Join(work, "layout"))
	for _, name := range slices.Sorted(maps.Keys(g.targets)) {
		err := timed(log, "building "+name, func() error {
			build := slices.Concat(args, []string{"--target", g.targets[name], "--tag", "localhost/" + name, source})
			if err := store.build(ctx, build...); err != nil {
				return err
			}
			// The images are pulled on the same computer, so fast compression is better than small layers.
			return store.run(ctx, "push", "--compression-level=1", "localhost/"+name, fmt.Sprintf("oci:%s:%s", staging, name))
		})
		if err != nil {
			return err
		}
	}
	if err := staging.recordPackages(); err != nil {
		return err
	}
	return target.merge(staging, g.key)
}

// store is a directory with buildah's whole state.
type store string

// build runs buildah build: without new namespaces, so that it works inside containers, and with fixed timestamps, so
// that the same content gives the same layers.
func (s store) build(ctx context.Context, args ...string) error {
	return s.run(ctx,
		append([]string{"build", "--isolation=chroot", "--network=host", "--layers", "--timestamp=0"}, args...)...)
}

// run runs buildah. It always puts a cache into /var/lib/containers, so a directory of the store is mounted there, in a
// mount namespace, which also removes all mounts when buildah exits.
func (s store) run(ctx context.Context, args ...string) error {
	const inNamespace = `mkdir -p /var/lib/containers "$0/lib" "$0/tmp" &&
		mount --bind "$0/lib" /var/lib/containers && TMPDIR="$0/tmp" exec buildah "$@"`
	options := []string{
		"--root", filepath.Join(string(s), "root"), "--runroot", filepath.Join(string(s), "run"),
		"--storage-driver=overlay",
	}
	return run(ctx, "unshare", slices.Concat([]string{"--mount", "sh", "-c", inNamespace, string(s)}, options, args)...)
}

// addBase adds the base image of a suite to the store.
func (s store) addBase(ctx context.Context, log io.Writer, suite string) error {
	dir, err := cache.Entry(ctx, "debian", baseKey(suite), func(ctx context.Context, dir string) error {
		return timed(log, "bootstrapping Debian "+suite, func() error {
			return run(ctx, "mmdebstrap", append(bootstrapArgs(suite), filepath.Join(dir, "root.tar"))...)
		})
	})
	if err != nil {
		return err
	}
	dockerfile := filepath.Join(string(s), "Dockerfile.base")
	if err := os.WriteFile(dockerfile, []byte("FROM scratch\nADD root.tar /\n"), 0o644); err != nil {
		return err
	}
	return s.build(ctx, "--file", dockerfile, "--tag", baseImage, dir)
}

// Debian returns a root filesystem with Debian packages, for a computer rather than a container.
func Debian(ctx context.Context, packages ...string) (Unpacked, error) {
	args := append([]string{"--include=" + strings.Join(packages, ",")}, bootstrapArgs(base)...)
	dir, err := cache.Entry(ctx, "debian", cache.Key(args...), func(ctx context.Context, dir string) error {
		return run(ctx, "mmdebstrap", append(args, filepath.Join(dir, "root"))...)
	})
	return Unpacked{Layers: []string{filepath.Join(dir, "root")}}, err
}

// bootstrapArgs returns mmdebstrap's arguments for a small root filesystem. The dpkg options also apply to packages
// that are installed later. The signatures of a testing suite expire if the archive has not changed for a while.
func bootstrapArgs(suite string) []string {
	args := []string{"--variant=minbase", `--aptopt=Acquire::Check-Valid-Until "false"`}
	for _, excluded := range []string{"doc", "info", "locale", "man"} {
		args = append(args, "--dpkgopt=path-exclude=/usr/share/"+excluded+"/*")
	}
	return append(args, "--dpkgopt=path-include=/usr/share/doc/*/copyright", suite)
}

// baseKey returns the key of the base image of a suite.
func baseKey(suite string) string {
	return cache.Key(bootstrapArgs(suite)...)
}

// run runs a command; if it fails, the error contains the end of its output, or only the reason of slurm-suite.
func run(ctx context.Context, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		if reason := suiteReason.Find(output.Bytes()); reason != nil {
			return errors.New(string(reason))
		}
		const maxBytes = 4096
		tail := output.String()[max(0, output.Len()-maxBytes):]
		return fmt.Errorf("%s: %w\n%s", name, err, strings.TrimSpace(tail))
	}
	return nil
}

// suiteReason matches why the script slurm-suite fails.
var suiteReason = regexp.MustCompile(`(?m)^slurm-suite: .*`)

func copyFile(target, source string) error {
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		return err
	}
	return to.Close()
}
