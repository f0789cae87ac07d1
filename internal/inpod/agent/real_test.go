//go:build slurm

package agent

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// asCommand in the environment makes the test binary act as `slurm-operator agent`.
const asCommand = "AGENT_TEST_RUNS_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	err := Run(context.Background(), Options{
		Config: "/etc/slurm", PIDFile: "/run/slurmctld/slurmctld.pid", Listen: ":6816", Slurmctld: "localhost:6817",
	})
	panic(err)
}

// liveAgent is an agent next to a real slurmctld.
type liveAgent struct {
	*slurmnet.Cluster
	address string
	key     []byte // the JWT key
	conf    string // slurm.conf without a marker
}

// startAgent starts a cluster, and an agent next to its slurmctld, as the user slurm.
func startAgent(t *testing.T, version string) liveAgent {
	t.Helper()
	live := liveAgent{Cluster: slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 1})}
	conf, err := os.ReadFile(live.Slurmctld.Path("/etc/slurm/slurm.conf"))
	if err != nil {
		t.Fatal(err)
	}
	live.conf = string(conf)
	if live.key, err = os.ReadFile(live.Slurmctld.Path("/etc/slurm/jwt_hs256.key")); err != nil {
		t.Fatal(err)
	}
	live.address = "http://" + net.JoinHostPort(live.Slurmctld.Address(), "6816")
	live.Slurmctld.RunSelf(t, asCommand)
	return live
}

// publish replaces slurm.conf by one with a marker and further lines.
func (l liveAgent) publish(t *testing.T, marker, more string) {
	t.Helper()
	conf := strings.Replace(l.conf, "SlurmctldParameters=", "SlurmctldParameters=config_hash="+marker+",", 1) + more
	path := l.Slurmctld.Path("/etc/slurm/slurm.conf")
	if err := os.WriteFile(path+".new", []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func (l liveAgent) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.address+path, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}

// waitFor waits for a report, and returns it and the time that took.
func (l liveAgent) waitFor(t *testing.T, wanted func(Report) bool) (Report, time.Duration) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		current, err := report.Fetch[Report](ctx, strings.TrimPrefix(l.address, "http://"), ReportPath, l.key)
		if err == nil && wanted(current) {
			return current, time.Since(began)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the agent's report is %+v: %v", current, err)
		case <-ticker.C:
		}
	}
}

func runs(marker string) func(Report) bool {
	return func(report Report) bool { return report.RunningHash == marker && report.LastError == "" }
}

func (l liveAgent) expectStatus(t *testing.T, path string, want int) {
	t.Helper()
	response, err := l.get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != want {
		t.Errorf("%s: %s", path, response.Status)
	}
}

func TestRealAgentAppliesFiles(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			live := startAgent(t, version)
			live.publish(t, "aaa1", "")
			report, _ := live.waitFor(t, runs("aaa1"))
			if !strings.HasPrefix(report.SlurmVersion, version) {
				t.Errorf("report %+v", report)
			}
			live.expectStatus(t, "/livez", http.StatusNoContent)
			live.expectStatus(t, "/state", http.StatusUnauthorized)
			live.expectStatus(t, "/readyz", http.StatusNoContent)

			live.publish(t, "bbb2", "PartitionName=changed Nodes=ALL\n")
			_, took := live.waitFor(t, runs("bbb2"))
			t.Logf("Slurm %s ran with a changed file %.2f s after the change", version, took.Seconds())
			if _, err := live.Run(t.Context(), "scontrol", "show", "partition", "changed"); err != nil {
				t.Error(err)
			}

			// scontrol reads the same file and refuses it, so slurmctld is not reconfigured.
			live.publish(t, "ccc3", "PartionName=typo Nodes=ALL\n")
			report, _ = live.waitFor(t,
				func(report Report) bool { return strings.Contains(report.LastError, "PartionName") })
			t.Logf("a typo: %s", report.LastError)

			// slurmctld acknowledges and then waits for a file that it needs.
			live.publish(t, "ddd4", "TopologyPlugin=topology/tree\n")
			report, _ = live.waitFor(t,
				func(report Report) bool { return strings.Contains(report.LastError, "after reconfigure 1 to ddd4") })
			t.Logf("a missing file: %s", report.LastError)
			topology := []byte("SwitchName=s0 Nodes=" + live.Nodes[0].Name + "\n")
			if err := os.WriteFile(live.Slurmctld.Path("/etc/slurm/topology.conf"), topology, 0o644); err != nil {
				t.Fatal(err)
			}
			report, _ = live.waitFor(t, runs("ddd4"))
			t.Logf("finally: %+v", report)
		})
	}
}

// TestRealAgentNamesChangedNodes changes nodes like an administrator.
func TestRealAgentNamesChangedNodes(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			live := startAgent(t, version)
			live.publish(t, "aaa1", "")
			live.waitFor(t, runs("aaa1"))
			live.WaitReady(t)
			node := live.Nodes[0].Name
			cursor := live.changes(t, "").Cursor
			for _, test := range []struct {
				change []string
				want   string
			}{
				{[]string{"update", "NodeName=" + node, "State=DRAIN", "Reason=bad memory"}, node},
				{[]string{"update", "NodeName=" + node, "Comment=two\nlines"}, node},
				{[]string{"update", "NodeName=" + node, "Weight=7"}, node},
				{[]string{"create", "NodeName=later", "State=CLOUD", "CPUs=1"}, "later"},
				{[]string{"update", "NodeName=later", "Extra=x"}, "later"},
				{[]string{"delete", "NodeName=later"}, "later"},
			} {
				live.Slurmctld.MustRun(t, append([]string{"scontrol"}, test.change...)...)
				answer := live.changes(t, cursor)
				// slurmd may register at the same time.
				if answer.Unknown || !slices.Contains(answer.Names, test.want) || len(answer.Names) > 2 {
					t.Errorf("after scontrol %s: %+v", strings.Join(test.change, " "), answer)
				}
				cursor = answer.Cursor
			}
			live.WaitFor(t, "nothing changes", func(context.Context) error {
				answer := live.changes(t, cursor)
				cursor = answer.Cursor
				if answer.Unknown || len(answer.Names) > 0 {
					return fmt.Errorf("changes: %+v", answer)
				}
				return nil
			})
		})
	}
}

func (l liveAgent) changes(t *testing.T, since string) slurm.NodeChanges {
	t.Helper()
	answer, err := report.FetchWithin[slurm.NodeChanges](t.Context(), NodesTimeout,
		strings.TrimPrefix(l.address, "http://"), NodesPath+since, l.key)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestRealIdleAgentUsesNoCPU(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			live := startAgent(t, version)
			live.publish(t, "aaa1", "")
			first, _ := live.waitFor(t, runs("aaa1"))
			before := live.cpuTime(t)
			last, took := live.waitFor(t,
				func(report Report) bool { return report.CheckedAt.After(first.CheckedAt.Add(idleInterval / 2)) })
			spent := live.cpuTime(t) - before
			t.Logf("Slurm %s: the agent used %s of CPU in %s in steady state, including its commands", version, spent,
				took.Round(time.Second))
			if last.Reconfigures != 1 || spent > took/20 {
				t.Errorf("report %+v after %s of CPU in %s", last, spent, took)
			}
		})
	}
}

// cpuTime returns the CPU time of the agent and its commands.
func (l liveAgent) cpuTime(t *testing.T) time.Duration {
	t.Helper()
	stat, err := l.Slurmctld.Run(t.Context(), "sh", "-c", "cat /proc/$(cat /run/self.pid)/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, fields, _ := strings.Cut(stat, ") ")
	var ticks [4]int // user, system, and both of its children
	if _, err := fmt.Sscanf(strings.Join(strings.Fields(fields)[11:15], " "), "%d %d %d %d", &ticks[0], &ticks[1],
		&ticks[2], &ticks[3]); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ticks[0]+ticks[1]+ticks[2]+ticks[3]) * 10 * time.Millisecond
}
