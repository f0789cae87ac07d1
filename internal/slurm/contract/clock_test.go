//go:build slurm

package contract

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/jwt"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// The clocks of pods may differ by more than a minute. Tokens must still work, and the start time of slurmctld must be
// correct. Slurm's own daemons reject each other with such a difference, so the test ignores nodes.
func TestClockSkew(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			started := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 1})
			key, err := os.ReadFile(started.Slurmctld.Path("/etc/slurm/jwt_hs256.key"))
			must(t, err)
			for _, skew := range []string{"+90s", "-90s"} {
				t.Run(skew, func(t *testing.T) { testSkew(t, started, key, skew) })
			}
		})
	}
}

func testSkew(t *testing.T, started *slurmnet.Cluster, key []byte, skew string) {
	t.Helper()
	difference, err := time.ParseDuration(skew)
	must(t, err)
	started.Slurmctld.Stop(t)
	began := time.Now()
	startSkewed(t, started.Slurmctld, skew)
	token, err := jwt.Sign(key, "slurm", time.Now(), 10*time.Minute)
	must(t, err)
	target := realSlurm{Cluster: started}
	c := cluster{target, connect(t, target, always(token.Text))}
	var diag slurm.Diag
	var asked time.Time
	eventually(t, "slurmctld to accept the token and to know its start", func() error {
		asked = time.Now()
		if diag, err = c.Diag(t.Context()); err == nil && diag.CountersSince.IsZero() {
			err = errors.New("the counters have no start") // slurmctld answers requests before it sets it
		}
		return err
	})
	answered := time.Now()
	wantBetween(t, "slurmctld's clock", diag.Now, asked.Add(difference), answered.Add(difference))
	mirror := newMirror(t, c)
	snapshot, err := mirror.Refresh(t.Context())
	must(t, err)
	// The time that an answer takes cannot be told from an offset of the clock, so the start seems as much later.
	wantBetween(t, "slurmctld's start", snapshot.ControllerSince, began, time.Now())
}

// wantBetween compares a time that was computed from Slurm's whole seconds.
func wantBetween(t *testing.T, name string, is, first, last time.Time) {
	t.Helper()
	const rounding = 2 * time.Second
	if is.Before(first.Add(-rounding)) || is.After(last.Add(rounding)) {
		t.Fatalf("%s is %s, want between %s and %s", name, is, first, last)
	}
}

// startSkewed starts a daemon with a skewed clock.
func startSkewed(t *testing.T, daemon *slurmnet.Daemon, skew string) {
	t.Helper()
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err != nil || len(libraries) != 1 {
		t.Fatalf("libfaketime is not installed, see hack/install-packages: %v", libraries)
	}
	library, err := os.ReadFile(libraries[0])
	must(t, err)
	daemon.Write(t, "/usr/lib/libfaketimeMT.so.1", string(library))
	daemon.StartWith(t, "env", "LD_PRELOAD=/usr/lib/libfaketimeMT.so.1", "FAKETIME="+skew,
		"FAKETIME_DONT_FAKE_MONOTONIC=1",
		"/usr/sbin/slurmctld", "-D")
}
