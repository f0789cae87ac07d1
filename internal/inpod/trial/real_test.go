//go:build slurm

package trial

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// asCommand in the environment makes the test binary do what `slurm-operator trial` does.
const asCommand = "TRIAL_TEST_RUNS_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	timeout, err := time.ParseDuration(os.Getenv(asCommand))
	if err != nil {
		panic(err)
	}
	report := Hold(context.Background(), Options{Config: "/candidate", Scratch: "/trial", Timeout: timeout, Log: os.Stdout})
	if err := report.WriteFile("/trial/report"); err != nil {
		panic(err)
	}
}

// asPod runs a command as a container of a restricted pod would run: as slurm, with a root filesystem that cannot be
// written to but in three places.
const asPod = `
mount --make-rprivate /
for dir in /trial /tmp /run/slurmctld; do
    mount -t tmpfs -o mode=0700,uid=64030,gid=64030 tmpfs $dir
done
mount -o remount,bind,ro /
cd /
setpriv --reuid=64030 --regid=64030 --clear-groups --no-new-privs --bounding-set=-all "$@" || exit
echo "=== report"
cat /trial/report
`

// hold holds a trial of files in slurmctld's image, and returns the report and what slurmctld printed.
func hold(t *testing.T, host *slurmnet.Daemon, files map[string]string, timeout string) (Report, string) {
	t.Helper()
	config := host.Path("/candidate")
	if err := os.RemoveAll(config); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{config, host.Path("/trial")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(config, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	output, err := host.Run(t.Context(), asCommand+"="+timeout, "unshare", "--mount", "sh", "-euc", asPod, "sh", "/trial-command")
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	log, content, _ := strings.Cut(output, "=== report\n")
	var report Report
	if err := json.Unmarshal([]byte(content), &report); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return report, log
}

// startHost starts a cluster for the sake of the host of its slurmctld, and puts this program there.
func startHost(t *testing.T, version string) *slurmnet.Daemon {
	t.Helper()
	host := slurmnet.Start(t, slurmnet.Options{Version: version}).Slurmctld
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(host.Path("/trial-command"), program, 0o555); err != nil {
		t.Fatal(err)
	}
	return host
}

func TestRealTrials(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			host := startHost(t, version)
			for _, name := range slices.Sorted(maps.Keys(candidates)) {
				candidate := candidates[name]
				start := time.Now()
				report, log := hold(t, host, candidate.contents(t), "60s")
				t.Logf("%s %s %.2f s", name, report.Outcome, time.Since(start).Seconds())
				if *update {
					write(t, filepath.Join("testdata", version, name+".log"), log)
					write(t, filepath.Join("testdata", version, name+".detail"), report.Detail)
				}
				want := Refused
				if slices.Contains(candidate.accepted, version) {
					want = Accepted
				}
				if report.Outcome != want {
					t.Errorf("%s: %s, want %s: %s\n%s", name, report.Outcome, want, report.Detail, log)
				}
				if diff := cmp.Diff(golden(t, version, name), report.Detail); diff != "" {
					t.Errorf("%s: detail (-want +got):\n%s", name, diff)
				}
				if !strings.HasPrefix(report.SlurmVersion, version) {
					t.Errorf("%s: version %q", name, report.SlurmVersion)
				}
			}
		})
	}
}

func TestRealTrialThatCannotBeHeldFails(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			host := startHost(t, version)
			good := candidates["good"].contents(t)

			if report, _ := hold(t, host, good, "1ms"); report.Outcome != Failed {
				t.Errorf("without time: %+v", report)
			}
			// The cluster's own slurmctld listens there.
			occupied := map[string]string{"slurm.conf": strings.Replace(good["slurm.conf"], "6917", "6817", 1)}
			if report, _ := hold(t, host, occupied, "20s"); report.Outcome != Failed {
				t.Errorf("with an occupied port: %+v", report)
			}
			elsewhere := map[string]string{"slurm.conf": strings.Replace(good["slurm.conf"], "/trial/state", "/var/spool/nowhere", 1)}
			if report, _ := hold(t, host, elsewhere, "20s"); report.Outcome != Failed {
				t.Errorf("with state that cannot be written: %+v", report)
			}
			if _, err := host.Run(t.Context(), "mv", "/usr/sbin/slurmctld", "/usr/sbin/gone"); err != nil {
				t.Fatal(err)
			}
			if report, _ := hold(t, host, good, "20s"); report.Outcome != Failed {
				t.Errorf("without slurmctld: %+v", report)
			}
		})
	}
}
