// Package first is the first process of a container: it starts the container's program, forwards signals to it, and
// reaps orphaned processes.
//
// slurmrestd and sackd ignore SIGTERM as first processes, and slurmd and slurmctld leave zombies. An image may have an
// init program as its entrypoint, but also one that does something else and ignores its arguments. So the operator
// brings its own, and runs any image that has Slurm's programs.
package first

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run runs a command until it exits and returns its exit code. It must run at most once in a process.
func Run(command []string) (int, error) {
	environment := withDirectories(os.Environ())
	path, err := Find(command[0], environment)
	if err != nil {
		return 0, err
	}
	// In a pod whose containers share a process namespace, this process is not the first one.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	signals := make(chan os.Signal, 128)
	signal.Notify(signals)
	defer signal.Stop(signals)
	child, err := syscall.ForkExec(path, append([]string{path}, command[1:]...),
		&syscall.ProcAttr{Env: environment, Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", path, err)
	}
	for received := range signals {
		switch received {
		case syscall.SIGCHLD:
			if status, exited := reap(child); exited {
				return exitCode(status), nil
			}
		case syscall.SIGURG, syscall.SIGPIPE: // of this process: the Go runtime interrupts threads with SIGURG
		default:
			_ = syscall.Kill(child, received.(syscall.Signal)) // it may have exited, which the next signal tells
		}
	}
	return 0, errors.New("no more signals") // cannot happen: the channel is not closed
}

// reap collects all processes that have exited, and returns the status of the child if it is one of them.
func reap(child int) (status syscall.WaitStatus, exited bool) {
	for {
		var each syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &each, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || pid <= 0:
			return status, exited
		case pid == child && (each.Exited() || each.Signaled()):
			status, exited = each, true
		}
	}
}

// exitCode returns the exit code as shells do.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// directories are where images have Slurm's programs. An image may lack some of them in its PATH.
var directories = []string{
	"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/opt/slurm/sbin", "/opt/slurm/bin",
}

// withDirectories adds the missing directories to PATH in an environment.
func withDirectories(environment []string) []string {
	const prefix = "PATH="
	at := slices.IndexFunc(environment, func(each string) bool { return strings.HasPrefix(each, prefix) })
	if at < 0 {
		return append(environment, prefix+strings.Join(directories, ":"))
	}
	list := strings.Split(strings.TrimPrefix(environment[at], prefix), ":")
	for _, directory := range directories {
		if !slices.Contains(list, directory) {
			list = append(list, directory)
		}
	}
	environment = slices.Clone(environment)
	environment[at] = prefix + strings.Join(list, ":")
	return environment
}

// Find returns the path of a program. Slurm's daemons execute themselves again, which only works with a path.
func Find(program string, environment []string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	for _, each := range environment {
		list, isPath := strings.CutPrefix(each, "PATH=")
		if !isPath {
			continue
		}
		for directory := range strings.SplitSeq(list, ":") {
			path, err := exec.LookPath(directory + "/" + program)
			if err == nil && strings.HasPrefix(path, "/") {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("the image has no program %s in its PATH; use an image that has Slurm's daemons", program)
}
