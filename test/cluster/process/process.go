// Package process runs a test cluster's daemons: detached from the command that starts them, each with a log file and a
// pid file, and with a marker in their environment by which they are found even when the files are lost.
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

	"github.com/slurm-operator/slurm-operator/test/thread"
)

const pollInterval = 20 * time.Millisecond

// markVariable holds the directory of the cluster that a process belongs to.
const markVariable = "SLURM_OPERATOR_CLUSTER"

// Group is all daemons with files in one directory: logs in logs, pid files in run.
type Group struct{ Dir string }

// Spec describes how to start a daemon.
type Spec struct {
	Name string
	Path string
	Args []string
	Env  []string
	// Namespaces are the clone flags of the new namespaces to start it in.
	Namespaces uintptr
}

// LogFile returns the path of a daemon's log.
func (g Group) LogFile(name string) string { return filepath.Join(g.Dir, "logs", name+".log") }

func (g Group) pidFile(name string) string { return filepath.Join(g.Dir, "run", name+".pid") }

// Start starts a daemon that outlives the caller. It does nothing if the daemon is running.
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
		return fmt.Errorf("starting %s: it exited immediately, see %s", spec.Name, g.LogFile(spec.Name))
	}
	// Reap it if it exits while we still run, so that it does not stay as a zombie.
	go func() { _ = cmd.Wait() }()
	return os.WriteFile(g.pidFile(spec.Name), []byte(id.String()), 0o644)
}

// Pid returns the process id of a running daemon.
func (g Group) Pid(name string) (int, error) {
	content, err := os.ReadFile(g.pidFile(name))
	if err != nil {
		return 0, fmt.Errorf("%s is not running: %w", name, err)
	}
	id, err := parseIdentity(string(content))
	if err != nil {
		return 0, fmt.Errorf("reading the pid of %s: %w", name, err)
	}
	if id.hasExited() {
		return 0, fmt.Errorf("%s is not running: its process %d has exited, see %s", name, id.pid, g.LogFile(name))
	}
	return id.pid, nil
}

// Running reports whether a daemon is running.
func (g Group) Running(name string) bool {
	_, err := g.Pid(name)
	return err == nil
}

// Signal sends a signal to a running daemon. After SIGSTOP it returns when all threads of the daemon have stopped.
func (g Group) Signal(name string, signal syscall.Signal) error {
	pid, err := g.Pid(name)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, signal); err != nil || signal != syscall.SIGSTOP {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return thread.AllStopped(threads), err
	})
}

// Stop stops a daemon with SIGTERM, and after the grace period with SIGKILL. It does nothing if the daemon is not
// running.
func (g Group) Stop(ctx context.Context, name string, grace time.Duration) error {
	pid, err := g.Pid(name)
	if err != nil {
		return nil // it is not running
	}
	// A paused process would not handle SIGTERM before it continues.
	_ = syscall.Kill(pid, syscall.SIGTERM)
	_ = syscall.Kill(pid, syscall.SIGCONT)
	graceful, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if g.waitGone(graceful, name) == nil {
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
		return fmt.Errorf("%s does not exit: %w", name, err)
	}
	return os.RemoveAll(g.pidFile(name))
}

// Marked returns every process of the group, found by the marker in its environment, with or without a pid file.
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
			continue // it has exited since we listed it
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
				continue // it has exited since we found it
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return false, fmt.Errorf("killing process %d: %w", pid, err)
			}
			dying = append(dying, id)
		}
		// A killed process loses its environment, and with it the marker, before it releases its memory and ports.
		dying = slices.DeleteFunc(dying, identity.hasExited)
		return len(pids) == 0 && len(dying) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("killing processes %v: %w", dying, err)
	}
	return os.RemoveAll(filepath.Join(g.Dir, "run"))
}

// identity distinguishes a process from a later one with the same pid.
type identity struct {
	pid       int
	startedAt string
}

func (i identity) String() string { return strconv.Itoa(i.pid) + " " + i.startedAt }

func (i identity) hasExited() bool {
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

// identify returns the identity of a live process. A zombie counts as exited, unless it has other threads, which may
// still hold its files and ports.
func identify(pid int) (identity, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return identity{}, err
	}
	// The command name may contain spaces and parentheses; the third field follows the last parenthesis.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const state, threads, startTime = 0, 17, 19
	if len(fields) <= startTime || fields[state] == "Z" && fields[threads] == "1" {
		return identity{}, os.ErrProcessDone
	}
	return identity{pid, fields[startTime]}, nil
}
