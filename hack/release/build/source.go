package build

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Source is what a release is built from.
type Source struct {
	// Dir is the root of the repository.
	Dir string
	// Commit is its hash; it ends in -dirty if files differ from it.
	Commit string
	// Time is when it was committed.
	Time time.Time
}

// ReadSource returns the commit that is checked out in a directory. Unless it is allowed, files that differ from it are
// an error: the provenance of the release would be wrong.
func ReadSource(ctx context.Context, dir string, allowDirty bool) (Source, error) {
	git := func(arguments ...string) (string, error) {
		command := exec.CommandContext(ctx, "git", arguments...)
		command.Dir = dir
		out, err := command.Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", arguments[0], err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	line, err := git("show", "--no-patch", "--format=%H %ct", "HEAD")
	if err != nil {
		return Source{}, err
	}
	commit, stamp, _ := strings.Cut(line, " ")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return Source{}, fmt.Errorf("the time of commit %s: %w", commit, err)
	}
	changes, err := git("status", "--porcelain")
	if err != nil {
		return Source{}, err
	}
	if changes != "" && !allowDirty {
		return Source{}, errors.New("the checkout differs from its commit: commit or remove these files first\n" + changes)
	}
	if changes != "" {
		commit += "-dirty"
	}
	return Source{Dir: dir, Commit: commit, Time: time.Unix(seconds, 0).UTC()}, nil
}
