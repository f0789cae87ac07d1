package slurmnet

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slurm-operator/slurm-operator/test/thread"
)

// first are the attributes of the first process of a new PID namespace (and others), which the kernel ends when the
// test process ends, whatever ends that. Its end is then the end of all processes in the namespace.
func first(other uintptr) *syscall.SysProcAttr {
	const always = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC
	return &syscall.SysProcAttr{Cloneflags: always | other, Pdeathsig: syscall.SIGKILL}
}

// A process runs in namespaces of our choice.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // closed when it has ended
	err     error         // how it ended
}

// start starts a command in the namespaces with the given files. Go cannot do this with os/exec alone: a thread enters
// the namespaces and starts the command from there. The thread then stays until the command has ended, because the
// kernel takes the end of the thread for the end of the parent, and is not used for anything else.
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

// run runs a command to its end.
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
	// All are opened first, because entering a mount namespace changes what the paths mean.
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

// namespace is the file of the process's namespace of a kind, such as net.
func (p *process) namespace(kind string) string { return fmt.Sprintf("/proc/%d/ns/%s", p.pid(), kind) }

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends the process and waits until it is gone.
func (p *process) kill() {
	_ = p.command.Process.Kill() // fails when it has already ended
	<-p.ended
}
