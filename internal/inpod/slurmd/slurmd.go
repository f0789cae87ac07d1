// Package slurmd starts slurmd in a container whose cgroups it manages, and starts it again.
//
// To reconfigure itself, slurmd executes the path that it was started with. In confined pods this is a name of the
// operator's program (naming.SlurmdPath), which restores the container's cgroups first: with those that it has made
// itself, slurmd 24.11 exits at the second reconfigure, and all jobs of the pod with it. slurmd also executes that path
// to run scripts, with another process ID; then it is only passed on, which takes 60 ms and 48 MB. Slurm 26.05 does not
// need it, and its slurmd is started directly.
package slurmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slurm-operator/slurm-operator/internal/inpod/cgroups"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// Record is the file in which the script that starts slurmd writes its process ID and path, separated by a space.
const Record = "/run/slurm/slurmd.start"

// IsCalled reports whether this program was called under its other name.
func IsCalled() bool {
	path, err := os.Executable()
	return err == nil && filepath.Base(path) == filepath.Base(naming.SlurmdPath)
}

// Start becomes slurmd. It returns only if that fails.
func Start() error {
	content, err := os.ReadFile(Record)
	if err != nil {
		return err
	}
	path, again, err := parse(string(content), os.Getpid(), os.Getenv("SLURMD_RECONF") != "")
	if err != nil {
		return err
	}
	if again {
		if err := cgroups.Restore(cgroups.Directory); err != nil { // slurmd may start nevertheless
			fmt.Fprintln(os.Stderr, "slurm-operator: restoring the cgroups of slurmd:", err)
		}
	}
	return unix.Exec(path, os.Args, os.Environ())
}

// parse returns the path of slurmd, and whether a process is the slurmd that starts again.
func parse(record string, process int, reconfigures bool) (path string, again bool, err error) {
	var first int
	if _, err := fmt.Sscanf(record, "%d %s", &first, &path); err != nil {
		return "", false, fmt.Errorf("%s has %q: %w", Record, strings.TrimSpace(record), err)
	}
	return path, reconfigures && process == first, nil
}
