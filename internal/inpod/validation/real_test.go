//go:build slurm

package validation

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

	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmuser"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// asCommand in the environment makes the test binary act as `slurm-operator trial`.
const asCommand = "TRIAL_TEST_RUNS_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	timeout, err := time.ParseDuration(os.Getenv(asCommand))
	if err != nil {
		panic(err)
	}
	report := Run(context.Background(), Options{
		Config: "/candidate", Scratch: "/trial", Passwd: slurmuser.Passwd, Timeout: timeout, Log: os.Stdout,
	})
	if err := report.WriteFile("/trial/report"); err != nil {
		panic(err)
	}
}

// asPod runs a command like a container of a restricted pod: as slurm, with a root filesystem that is read-only except
// for three directories.
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

// validateOn validates files in slurmctld's image, and returns the report and slurmctld's output.
func validateOn(t *testing.T, host *slurmnet.Daemon, files map[string]string, timeout string) (Report, string) {
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
	output, err := host.Run(t.Context(), asCommand+"="+timeout, "unshare", "--mount", "sh", "-euc", asPod, "sh",
		"/trial-command")
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

// startHost starts a cluster, only for the host of its slurmctld, and copies this program to it.
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

func TestRealValidationRuns(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			host := startHost(t, version)
			for _, name := range slices.Sorted(maps.Keys(candidates)) {
				candidate := candidates[name]
				start := time.Now()
				report, log := validateOn(t, host, candidate.contents(t), "60s")
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

func TestRealValidationRunThatCannotStartFails(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			host := startHost(t, version)
			good := candidates["good"].contents(t)

			if report, _ := validateOn(t, host, good, "1ms"); report.Outcome != Failed {
				t.Errorf("without time: %+v", report)
			}
			// The cluster's own slurmctld listens on that port.
			occupied := map[string]string{"slurm.conf": strings.Replace(good["slurm.conf"], "6917", "6817", 1)}
			if report, _ := validateOn(t, host, occupied, "20s"); report.Outcome != Failed {
				t.Errorf("with an occupied port: %+v", report)
			}
			elsewhere := map[string]string{
				"slurm.conf": strings.Replace(good["slurm.conf"], "/trial/state", "/var/spool/nowhere", 1),
			}
			if report, _ := validateOn(t, host, elsewhere, "20s"); report.Outcome != Failed {
				t.Errorf("with state that is not writable: %+v", report)
			}
			if _, err := host.Run(t.Context(), "mv", "/usr/sbin/slurmctld", "/usr/sbin/gone"); err != nil {
				t.Fatal(err)
			}
			if report, _ := validateOn(t, host, good, "20s"); report.Outcome != Failed {
				t.Errorf("without slurmctld: %+v", report)
			}
		})
	}
}

// One NodeSet's bad partition or GRES does not block the others: only what the real slurmctld refuses is left out.
func TestRealSlurmctldNamesNodeSetsToLeaveOut(t *testing.T) {
	sets := []slurmconf.NodeSet{
		{Name: "cpu", Partition: new("MaxTime=60")},
		{Name: "fine", Partition: new("Default=YES")},
		{Name: "late", SlurmName: "slow", Partition: new("MaxTime=soon")},
		{Name: "share", GresTypes: []string{"shard"}}, // needs gpu, which no other set has
		{Name: "typo", Partition: new("MaxTimes=60")},
	}
	inForce := []slurmconf.NodeSet{
		{Name: "cpu", Partition: new("MaxTime=60")}, {Name: "late", SlurmName: "slow", Partition: new("MaxTime=30")},
	}
	build := func(t *testing.T, sets []slurmconf.NodeSet, extra string) slurmconf.Document {
		t.Helper()
		document, err := slurmconf.Build(slurmconf.Cluster{
			Name: "slurm", Hosts: []slurmconf.Host{{Name: "slurm-0"}}, Port: 6817, SlurmUser: "slurm", MaxNodeCount: 64,
			NodeSets: sets, ExtraConf: extra,
		})
		if err != nil {
			t.Fatal(err)
		}
		return document
	}
	contents := func(t *testing.T, host, extra string) map[string]string {
		t.Helper()
		document := build(t, sets, extra)
		changes, err := json.Marshal(slurmconf.ChangesOf(document, build(t, inForce, ""), sets, nil).ForValidation(document))
		if err != nil {
			t.Fatal(err)
		}
		conf := slurmconf.ForValidation(document, slurmconf.ValidationOptions{
			Host: host, Port: 6917, Directory: "/trial/etc", State: "/trial/state", PidFile: "/trial/slurmctld.pid",
		})
		return map[string]string{
			"slurm.conf": conf.Render(), "cgroup.conf": "CgroupPlugin=disabled\n",
			slurmconf.ChangesFile: string(changes),
		}
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			host := startHost(t, version)
			name, err := host.Run(t.Context(), "hostname")
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			report, log := validateOn(t, host, contents(t, strings.TrimSpace(name), ""), "60s")
			t.Logf("%.1f s: %+v", time.Since(start).Seconds(), report)
			var names []string
			for _, each := range report.LeftOut {
				names = append(names, each.NodeSet)
			}
			if slices.Sort(names); report.Outcome != Accepted ||
				!slices.Equal(names, []string{"late", "share", "typo"}) || report.AllLeftOut {
				t.Errorf("%+v\n%s", report, log)
			}
			for _, each := range report.LeftOut {
				if want := map[string]string{"late": "soon", "share": "shard",
					"typo": "MaxTimes"}[each.NodeSet]; !strings.Contains(each.Detail, want) {
					t.Errorf("NodeSet %s is left out for %q", each.NodeSet, each.Detail)
				}
			}
			// An error that no NodeSet causes refuses the whole candidate.
			if report, log := validateOn(t, host, contents(t, strings.TrimSpace(name), "PriorityType=priority/nope"),
				"60s"); report.Outcome != Refused || len(report.LeftOut) > 0 {
				t.Errorf("%+v\n%s", report, log)
			}
		})
	}
}
