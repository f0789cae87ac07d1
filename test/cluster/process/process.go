// Package process runs a test cluster's daemons: detached from the command that starts them, with a log file and a pid
// file each, and with a mark in their environment by which they are found again when everything else about them is lost.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const pollInterval = 20 * time.Millisecond

// markVariable carries the directory of the cluster that a process belongs to.
const markVariable = "SLURM_OPERATOR_CLUSTER"

// Group is all daemons that keep their files in one directory: logs below logs, pid files below run.
type Group struct{ Dir string }

// Spec says how to start a daemon.
type Spec struct {
	Name string
	Path string
	Args []string
	Env  []string
	// Namespaces are the clone flags of new namespaces to start it in.
	Namespaces uintptr
}

// LogFile is where the daemon of that name writes its output.
func (g Group) LogFile(name string) string { return filepath.Join(g.Dir, "logs", name+".log") }

func (g Group) pidFile(name string) string { return filepath.Join(g.Dir, "run", name+".pid") }

// Start starts a daemon that outlives the caller. One that runs already is left alone.
func (g Group) Start(spec Spec) error {
	if g.Running(spec.Name) {
		return nil
	}
	for _, file := range []string{g.LogFile(spec.Name), g.pidFile(spec.Name)} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(g.LogFile(spec.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(spec.Path, spec.Args...) //nolint:noctx // the daemon outlives every context of its starter
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(append(os.Environ(), markVariable+"="+g.Dir), spec.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: spec.Namespaces}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	id, err := identify(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("starting %s: it ended at once, see %s", spec.Name, g.LogFile(spec.Name))
	}
	// Reap it when it ends while we still run, so that it does not look alive as a zombie.
	go func() { _ = cmd.Wait() }()
	return os.WriteFile(g.pidFile(spec.Name), []byte(id.String()), 0o644)
}

// Pid is the process id of a running daemon.
func (g Group) Pid(name string) (int, error) {
	content, err := os.ReadFile(g.pidFile(name))
	if err != nil {
		return 0, fmt.Errorf("%s is not running: %w", name, err)
	}
	id, err := parseIdentity(string(content))
	if err != nil {
		return 0, fmt.Errorf("reading the pid of %s: %w", name, err)
	}
	if id.hasEnded() {
		return 0, fmt.Errorf("%s is not running: its process %d has ended, see %s", name, id.pid, g.LogFile(name))
	}
	return id.pid, nil
}

// Running reports whether the daemon of that name runs.
func (g Group) Running(name string) bool {
	_, err := g.Pid(name)
	return err == nil
}

// Signal sends a signal to a running daemon.
func (g Group) Signal(name string, signal syscall.Signal) error {
	pid, err := g.Pid(name)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, signal)
}

// Stop ends a daemon: politely, and after the grace period by force. One that does not run is no error.
func (g Group) Stop(ctx context.Context, name string, grace time.Duration) error {
	pid, err := g.Pid(name)
	if err != nil {
		return nil // what does not run is stopped
	}
	// A stopped process would not see SIGTERM before it continues.
	_ = syscall.Kill(pid, syscall.SIGTERM)
	_ = syscall.Kill(pid, syscall.SIGCONT)
	polite, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if g.waitGone(polite, name) == nil {
		return nil
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	return g.waitGone(ctx, name)
}

func (g Group) waitGone(ctx context.Context, name string) error {
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		return !g.Running(name), nil
	})
	if err != nil {
		return fmt.Errorf("%s does not end: %w", name, err)
	}
	return os.RemoveAll(g.pidFile(name))
}

// Marked finds every process of the group by the mark in its environment, whatever became of its pid file.
func (g Group) Marked() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		environment, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err != nil {
			continue // it ended since we listed it
		}
		for variable := range strings.SplitSeq(string(environment), "\x00") {
			if variable == markVariable+"="+g.Dir {
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}

// KillAll kills every process of the group and waits until none is left.
func (g Group) KillAll(ctx context.Context) error {
	var dying []identity
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		pids, err := g.Marked()
		if err != nil {
			return false, err
		}
		for _, pid := range pids {
			id, err := identify(pid)
			if err != nil {
				continue // it ended since we found it
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return false, fmt.Errorf("killing process %d: %w", pid, err)
			}
			dying = append(dying, id)
		}
		// A killed process loses its environment, and with it the mark, before it gives up its memory and its ports.
		dying = slices.DeleteFunc(dying, identity.hasEnded)
		return len(pids) == 0 && len(dying) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("ending processes %v: %w", dying, err)
	}
	return os.RemoveAll(filepath.Join(g.Dir, "run"))
}

// identity tells a process from a later one with the same pid.
type identity struct {
	pid       int
	startedAt string
}

func (i identity) String() string { return strconv.Itoa(i.pid) + " " + i.startedAt }

func (i identity) hasEnded() bool {
	now, err := identify(i.pid)
	return err != nil || now != i
}

func parseIdentity(text string) (identity, error) {
	pid, startedAt, ok := strings.Cut(strings.TrimSpace(text), " ")
	number, err := strconv.Atoi(pid)
	if !ok || err != nil {
		return identity{}, fmt.Errorf("%q is not a process id and a start time", text)
	}
	return identity{number, startedAt}, nil
}

// identify reads a live process's identity. A zombie has ended, but for threads that may still hold its files and ports.
func identify(pid int) (identity, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return identity{}, err
	}
	// The command name may hold spaces and parentheses; the fields after the last parenthesis are the third and on.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const state, threads, startTime = 0, 17, 19
	if len(fields) <= startTime || fields[state] == "Z" && fields[threads] == "1" {
		return identity{}, os.ErrProcessDone
	}
	return identity{pid, fields[startTime]}, nil
}
