//go:build slurm

package daemon

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// asCommand in the environment makes the test binary act as `slurm-operator run`.
const asCommand = "DAEMON_TEST_RUNS_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := Run(ctx, os.Args[1:], os.Stderr); err != nil {
		panic(err)
	}
}

// gracePeriod is that of slurmctld's pod.
const gracePeriod = 2 * time.Minute

// slurmctld terminates on SIGTERM at any moment of a reconfigure, during which it can lose the signal.
func TestRealSlurmctldStopsDuringReconfigure(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			cluster := slurmnet.Start(t, slurmnet.Options{Version: version})
			program, err := os.ReadFile("/proc/self/exe")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(cluster.Slurmctld.Path("/run-command"), program, 0o555); err != nil {
				t.Fatal(err)
			}
			cluster.Slurmctld.Stop(t)
			for moment := range 10 {
				cluster.Slurmctld.StartWith(t, "env", asCommand+"=yes", "/run-command", "/usr/sbin/slurmctld", "-D")
				cluster.WaitReady(t)
				begun := make(chan struct{})
				var reconfigure sync.WaitGroup
				reconfigure.Go(func() {
					close(begun)
					// It fails if slurmctld exits first.
					_, _ = cluster.Slurmctld.Run(t.Context(), "scontrol", "reconfigure")
				})
				<-begun
				if _, err := cluster.Slurmctld.Run(t.Context(), "sleep",
					fmt.Sprintf("%.3f", 0.006*float64(moment))); err != nil {
					t.Fatal(err)
				}
				if !cluster.Slurmctld.Terminate(t, gracePeriod) {
					// slurmctld 24.11 can deadlock, which only the end of the grace period resolves. One that still
					// responds has lost the signal.
					if _, err := cluster.Slurmctld.Run(t.Context(), "timeout", "60", "scontrol", "ping"); err == nil {
						t.Fatalf("moment %d: SIGTERM was lost", moment)
					}
					cluster.Slurmctld.Kill(t)
				}
				reconfigure.Wait()
			}
		})
	}
}
