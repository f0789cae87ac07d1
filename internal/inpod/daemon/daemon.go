// Package daemon runs one of Slurm's daemons, and sees to it that it ends when it is asked to.
//
// A slurmctld that is told to read its configuration starts itself anew, and forgets a SIGTERM that comes meanwhile. It would go on
// until Kubernetes kills it, and lose what it knew of the youngest jobs. So it is asked again and again until it has ended.
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

// again is how long a daemon that was asked to end gets before it is asked again. One that is already ending does not mind.
const again = 2 * time.Second

// Run runs a daemon until it ends; when the context ends, the daemon is asked to. Its other signals are passed on to it.
func Run(ctx context.Context, command []string, log io.Writer) error {
	daemon := exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...)
	daemon.Stdout, daemon.Stderr = log, log
	passed := make(chan os.Signal, 1)
	signal.Notify(passed, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(passed)
	if err := daemon.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	asked := ctx.Done()
	ticker := time.NewTicker(again)
	defer ticker.Stop()
	for {
		var send os.Signal
		select {
		case err := <-ended:
			return outcome(ctx, command[0], err)
		case send = <-passed:
		case <-asked:
			asked, send = nil, syscall.SIGTERM
			ticker.Reset(again)
		case <-ticker.C:
			if asked == nil {
				send = syscall.SIGTERM
			}
		}
		if send != nil {
			_ = daemon.Process.Signal(send) // it may have ended meanwhile, which is heard of next
		}
	}
}

// outcome is what an end means: it is no failure when it was asked for.
func outcome(ctx context.Context, name string, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("running %s: %w", name, err)
	case ctx.Err() == nil:
		return fmt.Errorf("%s has ended by itself", name)
	}
	return nil
}
