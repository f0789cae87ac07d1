// Package images builds all container images of the tests and keeps them in one OCI image layout in the cache.
//
// The images come from the Dockerfiles in the repository's images directory. Instead of pulling a Debian base image
// from a registry, Build creates one from Debian's packages with mmdebstrap and passes it to buildah, which builds in a
// temporary store. Each image in the layout has the key of its sources: an image whose key still matches is kept, so
// building an up-to-date image only reads a few small files, whatever Debian's archive has in the meantime. The layout
// records the versions of Slurm and of what comes with it from another suite. Scratch images (one static binary and the
// like) are written directly. Registry serves the layout to container runtimes, and Unpack turns an image into
// directories that can be mounted.
//
// Making images needs root and the Debian packages mmdebstrap and buildah.
package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/cache"
	"github.com/slurm-operator/slurm-operator/hack/repo"
)

// Versions are the Slurm versions that images are built for, newest first.
var Versions = []string{"26.05", "24.11"}

// base is the Debian suite of all images.
const base = "trixie"

// Roles returns the roles that each Slurm version has an image of.
func Roles() []string { return slices.Clone(roles) }

// roles are the targets of the Slurm Dockerfile.
var roles = []string{"slurmctld", "slurmd", "slurmdbd", "slurmrestd", "login", "slurmd-mpi", "login-mpi"}

// Names of the images that do not depend on a Slurm version.
const (
	MariaDB  = "slurm-operator/mariadb:test"
	OpenLDAP = "slurm-operator/openldap:test"
	Operator = "slurm-operator/slurm-operator:dev"
)

// Slurm returns the name of the image of a role (slurmctld, slurmd, slurmdbd, slurmrestd or login) in a Slurm version.
func Slurm(role, version string) string {
	return fmt.Sprintf("slurm-operator/%s:%s", role, version)
}

// Options describe what Build builds besides the images of Slurm, MariaDB and OpenLDAP.
type Options struct {
	// Operator is the path of a static operator binary. If it is empty, the operator image is not built.
	Operator string
}

// Dir returns the directory of the OCI image layout.
func Dir() (string, error) {
	root, err := cache.Dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "images"), nil
}

// Build builds all images that are missing or out of date, and writes a line to log for each of them, and the versions
// of Slurm in all of them.
func Build(ctx context.Context, log io.Writer, opts Options) error {
	repository, err := repo.Root()
	if err != nil {
		return err
	}
	groups, err := plan(filepath.Join(repository, "images"), opts)
	if err != nil {
		return err
	}
	target, err := openLayout()
	if err != nil {
		return err
	}
	for _, group := range groups {
		if err := group.ensure(ctx, log, target); err != nil {
			return err
		}
		if err := group.logPackages(log, target); err != nil {
			return err
		}
	}
	return nil
}

// A group is a set of images that are built together because they share a Dockerfile and its layers.
type group struct {
	key     string            // hash of everything the images are built from
	suite   string            // Debian suite of the base; empty for an image from scratch
	context string            // directory with the Dockerfile
	args    map[string]string // build arguments
	targets map[string]string // image name to target in the Dockerfile; an empty target is the last one
	files   map[string]string // files from elsewhere, by their name in the build context
}

// plan lists the groups with their keys.
func plan(sources string, opts Options) ([]group, error) {
	var groups []group
	for _, version := range Versions {
		targets := map[string]string{}
		for _, role := range roles {
			targets[Slurm(role, version)] = role
		}
		groups = append(groups, group{
			suite:   base,
			context: filepath.Join(sources, "slurm"),
			// The newest patch release: an archive keeps no older one.
			args:    map[string]string{"SLURM_VERSION": version + ".*"},
			targets: targets,
		})
	}
	groups = append(groups,
		group{suite: base, context: filepath.Join(sources, "mariadb"), targets: map[string]string{MariaDB: ""}},
		group{suite: base, context: filepath.Join(sources, "openldap"), targets: map[string]string{OpenLDAP: ""}})
	if opts.Operator != "" {
		groups = append(groups, group{
			context: filepath.Join(sources, "operator"),
			targets: map[string]string{Operator: "prebuilt"},
			files:   map[string]string{"slurm-operator": opts.Operator},
		})
	}
	for i := range groups {
		key, err := groups[i].computeKey()
		if err != nil {
			return nil, err
		}
		groups[i].key = key
	}
	return groups, nil
}

func (g *group) computeKey() (string, error) {
	tree, err := cache.KeyOfTree(g.context)
	if err != nil {
		return "", err
	}
	parts := []string{tree, baseKey(g.suite), fmt.Sprint(g.args), fmt.Sprint(g.targets)}
	for name, path := range g.files {
		file, err := cache.KeyOfTree(path)
		if err != nil {
			return "", err
		}
		parts = append(parts, name, file)
	}
	return cache.Key(parts...), nil
}

// ensure builds the group unless the layout already has all its images under its key.
func (g *group) ensure(ctx context.Context, log io.Writer, target layout) error {
	if fresh, err := g.isFresh(target); fresh || err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("building images needs root")
	}
	unlock, err := target.lock()
	if err != nil {
		return err
	}
	defer unlock()
	// Another process may have built it while this one waited.
	if fresh, err := g.isFresh(target); fresh || err != nil {
		return err
	}
	return g.build(ctx, log, target)
}

func (g *group) isFresh(target layout) (bool, error) {
	for name := range g.targets {
		switch image, err := target.find(name); {
		case errors.Is(err, errNotFound):
			return false, nil
		case err != nil:
			return false, err
		case image.Annotations[keyAnnotation] != g.key:
			return false, nil
		}
	}
	return true, nil
}

// timed runs a step and writes its name and duration to log.
func timed(log io.Writer, step string, run func() error) error {
	start := time.Now()
	if err := run(); err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	fmt.Fprintf(log, "%s: %.1f s\n", step, time.Since(start).Seconds())
	return nil
}
