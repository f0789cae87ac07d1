package slurmnet

import (
	"context"
	"os"
	"sync"
	"testing"
)

// RunSelf runs the test's own binary on the host of a daemon, as the user slurm, until the test ends. The environment
// variable is set there, so that TestMain knows what to run. The process ID is in /run/self.pid.
func (d *Daemon) RunSelf(tb testing.TB, variable string) {
	tb.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(d.Path("/self"), program, 0o555); err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		_, err := d.Run(ctx, variable+"=yes", "sh", "-c",
			`echo $$ >/run/self.pid; exec setpriv --reuid=64030 --regid=64030 --clear-groups /self`)
		if ctx.Err() == nil {
			tb.Errorf("%s has exited: %v", variable, err)
		}
	})
	tb.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// Address returns the IP address of the daemon's host.
func (d *Daemon) Address() string { return d.address }
