package cgroups

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// preparing are the capabilities that only the preparation needs. SETPCAP is the last, because it is needed to give up
// the others.
var preparing = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}

// Exec replaces this process by a command without the capabilities of the preparation, and without a way to regain
// privileges, so that neither slurmd nor a job can undo it. With cgroup v1, slurmd keeps SYS_ADMIN: it needs that to
// limit jobs to their devices. It must be called in the thread of Prepare.
func Exec(version Version, command []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	for _, capability := range preparing {
		if version == 1 && capability == unix.CAP_SYS_ADMIN {
			continue
		}
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, capability, 0, 0, 0)
		if err == nil && has == 1 {
			err = unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		}
		if err != nil {
			return fmt.Errorf("giving up capability %d: %w; SETPCAP is needed for it", capability, err)
		}
	}
	if err := lowerScore(score); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	return unix.Exec(path, command, os.Environ())
}

// score is the file with a process's adjustment of its OOM score.
const score = "/proc/self/oom_score_adj"

// lowerScore sets the adjustment to 0, if it is higher, as the kubelet sets it for a container without guaranteed
// memory. Otherwise slurmstepd may inherit it, while the tasks of jobs set theirs to 0: if a job exceeds its memory,
// the kernel then ends slurmstepd first, and slurmctld never hears of the job's end.
func lowerScore(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	adjustment, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || adjustment <= 0 {
		return err
	}
	if err := os.WriteFile(file, []byte("0"), 0); !errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil // without SYS_RESOURCE, the tasks of jobs may not lower theirs either
}
