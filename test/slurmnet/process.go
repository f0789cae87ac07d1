package slurmnet

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slurm-operator/slurm-operator/test/thread"
)

// first returns the attributes of the first process of a new PID namespace (and others). The kernel kills it when the
// test process exits for any reason, and with it all processes in the namespace.
func first(other uintptr) *syscall.SysProcAttr {
	const always = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC
	return &syscall.SysProcAttr{Cloneflags: always | other, Pdeathsig: syscall.SIGKILL}
}

// A process is a command that runs in given namespaces.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // closed when it has exited
	err     error         // the result of Wait
}

// start starts a command in the namespaces with the given files. os/exec cannot do this: a thread enters the namespaces
// and starts the command from there. The thread is kept until the command has exited, because the kernel treats the
// exit of the thread as the exit of the parent, and it is not used for anything else.
func start(command *exec.Cmd, namespaces ...string) (*process, error) {
	p := &process{command: command, ended: make(chan struct{})}
	started := make(chan error)
	go thread.Run(func() {
		err := enter(namespaces)
		if err == nil {
			err = command.Start()
		}
		started <- err
		if err == nil {
			p.err = command.Wait()
			close(p.ended)
		}
	})
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run runs a command and waits until it exits.
func run(command *exec.Cmd, namespaces ...string) error {
	p, err := start(command, namespaces...)
	if err != nil {
		return err
	}
	<-p.ended
	return p.err
}

// enter moves the calling thread into namespaces.
func enter(namespaces []string) error {
	// A thread that shares its root and working directory with others may not change its mount namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unsharing a thread: %w", err)
	}
	var files []*os.File
	defer func() {
		for _, file := range files {
			file.Close()
		}
	}()
	// All are opened first, because entering a mount namespace changes the meaning of paths.
	for _, namespace := range namespaces {
		file, err := os.Open(namespace)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	for _, file := range files {
		if err := unix.Setns(int(file.Fd()), 0); err != nil {
			return fmt.Errorf("entering %s: %w", file.Name(), err)
		}
	}
	return nil
}

func (p *process) pid() int { return p.command.Process.Pid }

// namespace returns the file of the process's namespace of a type, such as net.
func (p *process) namespace(kind string) string { return fmt.Sprintf("/proc/%d/ns/%s", p.pid(), kind) }

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill kills the process and waits until it has exited.
func (p *process) kill() {
	_ = p.command.Process.Kill() // fails if it has already exited
	<-p.ended
}
