// Package daemon runs one of Slurm's daemons and ensures that it terminates on request.
//
// A slurmctld that is reconfigured re-executes itself, and loses a SIGTERM that arrives meanwhile. It would run until
// Kubernetes kills it, and lose the state of the most recent jobs. So SIGTERM is repeated until it has exited. A daemon
// that hangs after that is left to the pod's grace period, which the user sets: only the user knows how long slurmctld
// may take to save its state.
package daemon

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// termInterval is the interval at which SIGTERM is repeated. A daemon that is already terminating ignores it.
const termInterval = 2 * time.Second

// Run runs a daemon until it exits; when the context is done, the daemon is terminated. Other signals are forwarded to
// it.
func Run(ctx context.Context, command []string, log io.Writer) error {
	path, err := exec.LookPath(command[0]) // slurmctld executes itself again, which only works with a path
	if err != nil {
		return err
	}
	daemon := exec.CommandContext(context.WithoutCancel(ctx), path, command[1:]...)
	daemon.Stdout, daemon.Stderr = log, log
	forwarded := make(chan os.Signal, 1)
	signal.Notify(forwarded, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(forwarded)
	if err := daemon.Start(); err != nil {
		return err
	}
	exited := make(chan error, 1)
	go func() { exited <- daemon.Wait() }()
	done := ctx.Done()
	ticker := time.NewTicker(termInterval)
	defer ticker.Stop()
	for {
		var send os.Signal
		select {
		case err := <-exited:
			return outcome(ctx, command[0], err)
		case send = <-forwarded:
		case <-done:
			done, send = nil, syscall.SIGTERM
			ticker.Reset(termInterval)
		case <-ticker.C:
			if done == nil {
				send = syscall.SIGTERM
			}
		}
		if send != nil {
			_ = daemon.Process.Signal(send) // it may have exited meanwhile, which the next iteration notices
		}
	}
}

// outcome returns the error of an exit: none if it was requested.
func outcome(ctx context.Context, name string, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("running %s: %w", name, err)
	case ctx.Err() == nil:
		return fmt.Errorf("%s exited unexpectedly", name)
	}
	return nil
}
