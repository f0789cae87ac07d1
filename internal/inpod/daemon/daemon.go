// Package daemon runs one of Slurm's daemons and ensures that it terminates on request.
//
// A slurmctld that is reconfigured re-executes itself, and loses a SIGTERM that arrives meanwhile. It would run until
// Kubernetes kills it, and lose the state of the most recent jobs. So SIGTERM is repeated until it has exited. Rarely,
// slurmctld 24.11 deadlocks when both arrive at once: it is killed before Kubernetes would do so, because each second
// without slurmctld is one in which no job starts.
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

// timing is how a daemon is terminated.
type timing struct {
	// repeat is the interval at which SIGTERM is repeated. A daemon that is already terminating ignores it.
	repeat time.Duration
	// kill is how long after the first SIGTERM a daemon is killed. slurmctld saves the state of 100,000 jobs in
	// seconds.
	kill time.Duration
}

var defaultTiming = timing{repeat: 2 * time.Second, kill: 90 * time.Second}

// Run runs a daemon until it exits; when the context is done, the daemon is terminated. Other signals are forwarded to
// it.
func Run(ctx context.Context, command []string, log io.Writer) error {
	return run(ctx, command, log, defaultTiming)
}

func run(ctx context.Context, command []string, log io.Writer, timing timing) error {
	daemon := exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...)
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
	ticker := time.NewTicker(timing.repeat)
	defer ticker.Stop()
	var kill <-chan time.Time
	killed := false
	for {
		var send os.Signal
		select {
		case err := <-exited:
			if killed {
				return fmt.Errorf("%s did not exit within %s of SIGTERM and was killed", command[0], timing.kill)
			}
			return outcome(ctx, command[0], err)
		case send = <-forwarded:
		case <-done:
			done, send = nil, syscall.SIGTERM
			ticker.Reset(timing.repeat)
			kill = time.After(timing.kill)
		case <-kill:
			killed, send = true, syscall.SIGKILL
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
