package command

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/plugintest"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
)

// now is when the tests run.
var now = time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)

// run runs the plugin against a server and returns what it prints.
func run(t *testing.T, server *plugintest.Server, arguments ...string) (string, error) {
	t.Helper()
	return runWith(t, server, scripted(t), arguments...)
}

// runWith does so with other answers of Slurm's commands.
func runWith(t *testing.T, server *plugintest.Server, slurm slurmcli.Runner, arguments ...string) (string, error) {
	t.Helper()
	return runAnywhere(t, server, func(kube.Container) slurmcli.Runner { return slurm }, arguments...)
}

// runAnywhere does so with answers that depend on the container that Slurm's commands run in.
func runAnywhere(
	t *testing.T, server *plugintest.Server, slurm func(kube.Container) slurmcli.Runner, arguments ...string,
) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")
	session := newSession()
	session.now = func() time.Time { return now }
	session.runIn = func(_ *kube.Client, in kube.Container) slurmcli.Runner { return slurm(in) }
	root := newRoot(session, "test")
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"--server=" + server.URL, "--namespace=slurm"}, arguments...))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// loaded returns a server with the objects of files in testdata.
func loaded(t *testing.T, files ...string) *plugintest.Server {
	t.Helper()
	server := plugintest.NewServer(t)
	for _, file := range files {
		server.Load(t, "testdata/"+file)
	}
	return server
}

// A line is a job as squeue prints it: the fields of slurmcli.Squeue, in its order.
type line []string

// queue is what squeue prints.
var queue = []line{
	{"4711", "4711", "train", "alice", "physics", "gpu", "normal", "RUNNING", "None", "gpu-3", "1", "16", "64G",
		"gres/gpu:2", "(null)", "", "", "(null)", "(null)", "1200", "4:00:00", at(-3 * time.Hour), at(-2 * time.Hour),
		at(2 * time.Hour)},
	{"4690", "4690", "sweep", "bob", "bio", "gpu", "normal", "RUNNING", "None", "gpu-0", "1", "64", "200G",
		"gres/gpu:8", "(null)", "", "", "(null)", "(null)", "1100", "UNLIMITED", at(-30 * time.Hour), at(-26 * time.Hour),
		at(8000 * time.Hour)},
	{"4712", "4712", "big", "alice", "physics", "gpu", "normal", "PENDING", "Resources", "", "4", "256", "64G",
		"gres/gpu:8", "h100", "", "", "(null)", "(null)", "900", "1-00:00:00", at(-time.Hour), at(2 * time.Hour),
		at(26 * time.Hour)},
	{"4713", "4713", "post", "alice", "physics", "all", "normal", "PENDING", "Dependency", "", "1", "1", "0",
		"N/A", "(null)", "", "", "afterok:4712(unfulfilled)", "(null)", "0", "10:00", at(-time.Hour), "N/A", "N/A"},
	{"4714_[3-9]", "4714", "array", "carol", "bio", "gpu", "short", "PENDING", "QOSMaxJobsPerUserLimit", "", "1", "8",
		"8G", "N/A", "(null)", "", "gpu-10", "(null)", "(null)", "800", "1:00:00", at(-10 * time.Minute), "N/A", "N/A"},
}

// allocations are the same jobs with what they hold or ask for, and further ones.
var allocations = []line{
	{"4711", "alice", "physics", "RUNNING", "cpu=16,mem=64G,node=1,billing=16,gres/gpu=2,gres/gpu:h100=2", "1", "1", "N/A",
		"gres/gpu:2", "N/A"},
	{"4690", "bob", "bio", "RUNNING", "cpu=64,mem=200G,node=1,billing=64,gres/gpu=8", "1", "1", "N/A", "gres/gpu:8",
		"N/A"},
	{"4712", "alice", "physics", "PENDING", "cpu=256,mem=256G,node=4,billing=256,gres/gpu=32", "4", "4", "N/A",
		"gres/gpu:8", "N/A"},
	{"4713", "alice", "physics", "PENDING", "cpu=1,mem=1G,node=1,billing=1", "1", "1", "N/A", "N/A", "N/A"},
	{"4714_[3-9]", "carol", "bio", "PENDING", "cpu=8,mem=8G,node=1,billing=8", "1", "1", "N/A", "N/A", "N/A"},
	{"4715", "dave", "", "RUNNING", "cpu=4,mem=8G,node=1,billing=4", "1", "1", "N/A", "N/A", "N/A"},
}

// at returns a time relative to now, as squeue prints it.
func at(offset time.Duration) string { return strconv.FormatInt(now.Add(offset).Unix(), 10) }

// scripted answers the commands of Slurm that the plugin runs.
func scripted(t *testing.T) slurmcli.Runner {
	t.Helper()
	return func(_ context.Context, command ...string) ([]byte, error) {
		switch {
		case slices.Contains(command, "nodes"):
			return os.ReadFile("testdata/nodes.json")
		case slices.Contains(command, "squeue") && slices.Equal(command, slurmcli.SqueueAllocations()):
			var printed strings.Builder
			for _, job := range allocations {
				printed.WriteString(strings.Join(job, "\x1f") + "\x1e\n")
			}
			return []byte(printed.String()), nil
		case slices.Contains(command, "squeue"):
			var printed strings.Builder
			for _, job := range queue {
				if selects(command, job) {
					printed.WriteString(strings.Join(job, "\x1f") + "\x1e\n")
				}
			}
			return []byte(printed.String()), nil
		default:
			t.Errorf("unexpected command: %q", command)
			return nil, nil
		}
	}
}

// selects reports whether the filters of a squeue command select a job.
func selects(command []string, job line) bool {
	for _, word := range command {
		option, value, _ := strings.Cut(word, "=")
		switch option {
		case "--jobs":
			if job[0] != value && job[1] != value {
				return false
			}
		case "--states":
			if value != "all" && !strings.Contains(value, strings.ToLower(job[7])) {
				return false
			}
		}
	}
	return true
}
