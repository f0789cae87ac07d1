//go:build slurm

package slurmcli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/plugin/drain"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// TestRealSlurmPrintsWhatIsParsed runs the commands of the plugin on both releases.
func TestRealSlurmPrintsWhatIsParsed(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			cluster := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 2})
			run := slurmcli.Runner(func(ctx context.Context, command ...string) ([]byte, error) {
				out, err := cluster.Run(ctx, command...)
				if err != nil {
					return nil, &slurmcli.Error{Command: command[0], Code: 1, Said: err.Error() + out}
				}
				return []byte(out), nil
			})
			checkJobs(t, cluster, run)
			checkAllocations(t, run)
			checkNodes(t, cluster, run)
		})
	}
}

func checkJobs(t *testing.T, cluster *slurmnet.Cluster, run slurmcli.Runner) {
	t.Helper()
	cluster.Login.MustRun(t, "sbatch", "--nodes=2", "--exclusive", "--time=10", "--job-name=one|two", "--wrap=sleep 300")
	cluster.Login.MustRun(t, "sbatch", "--nodes=2", "--exclusive", "--job-name=waits", "--wrap=true")
	cluster.Login.MustRun(t, "sbatch", "--array=1-3", "--dependency=afterok:1", "--wrap=true")
	found := map[string]slurmcli.Job{}
	cluster.WaitFor(t, "a job that runs, and reasons of the others", func(ctx context.Context) error {
		jobs, err := run.Jobs(ctx)
		for _, job := range jobs {
			found[job.Name] = job
		}
		// The reason of a job with a dependency is Resources until the scheduler has considered it.
		if err == nil && (found["one|two"].State != "RUNNING" || found["waits"].Reason == "" ||
			found["wrap"].Reason != "Dependency") {
			err = fmt.Errorf("squeue shows %+v", jobs)
		}
		return err
	})
	checkFields(t, found["one|two"], found["waits"], found["wrap"])
	if single, err := run.Job(t.Context(), "1"); err != nil || len(single) != 1 {
		t.Errorf("%+v, %v", single, err)
	}
	if missing, err := run.Job(t.Context(), "999"); err != nil || len(missing) != 0 {
		t.Errorf("%+v, %v", missing, err)
	}
	if on, err := run.Jobs(t.Context(), "--nodelist=node-1", slurmcli.OnNodes); err != nil || len(on) != 1 {
		t.Errorf("%+v, %v", on, err)
	}
}

// checkFields checks a running job, a pending one, and an array that depends on the first.
func checkFields(t *testing.T, one, waits, array slurmcli.Job) {
	t.Helper()
	if one.State != "RUNNING" || one.Nodes != "node-[0-1]" || one.NodeCount != 2 || one.End == nil || one.Start == nil ||
		one.Submitted == nil || one.Limit != "10:00" || one.Unlimited() {
		t.Errorf("%+v", one)
	}
	if !waits.Pending() || waits.Reason == "" || waits.Nodes != "" || waits.NodeCount != 2 {
		t.Errorf("%+v", waits)
	}
	if !array.Pending() || !strings.Contains(array.Dependency, "afterok:1") ||
		!strings.HasPrefix(array.ID, "3_[") {
		t.Errorf("%+v", array)
	}
}

// checkAllocations checks what the jobs of checkJobs hold and ask for: one of two nodes, one that waits, and an array.
func checkAllocations(t *testing.T, run slurmcli.Runner) {
	t.Helper()
	jobs, err := run.Allocations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	running, pending := 0, 0
	for _, job := range jobs {
		if job.User == "" || job.CPUs == 0 || job.GPUs != 0 {
			t.Errorf("%+v", job)
		}
		if job.Pending {
			pending += job.Jobs
			continue
		}
		running += job.Jobs
		if job.CPUs < 2 {
			t.Errorf("a job on two nodes: %+v", job)
		}
	}
	if running != 1 || pending != 4 {
		t.Errorf("%d jobs run and %d wait, want 1 and 4: %+v", running, pending, jobs)
	}
}

// checkNodes drains a node, and returns it and a failed one to service, with the commands of package drain.
func checkNodes(t *testing.T, cluster *slurmnet.Cluster, run slurmcli.Runner) {
	t.Helper()
	const reason = "broken fan (alice@example.org)"
	change := func(result drain.Result) {
		t.Helper()
		cluster.Login.MustRun(t, result.Command()...)
	}
	change(drain.Result{Verb: "drain", Reason: reason, Changed: []string{"node-1"}})
	for _, node := range readNodes(t, run) {
		drained := node.Name == "node-1"
		if node.HeldByOthers() != drained || drained && node.Reason != reason || !node.Busy() || node.CPUs == 0 ||
			node.Version == "" {
			t.Errorf("%+v", node)
		}
	}
	_, loads, err := run.NodesAndLoads(t.Context())
	for name, load := range loads {
		if load.CPUs == nil || load.FreeMemory == nil || *load.FreeMemory <= 0 || *load.CPUs > 10000 {
			t.Errorf("%s: %+v", name, load)
		}
	}
	if err != nil || len(loads) != 2 {
		t.Errorf("%d loads: %v", len(loads), err)
	}
	cluster.Login.MustRun(t, "scontrol", "update", "nodename=node-0", "state=fail", "reason=broken")
	change(drain.Result{Verb: "undrain", Changed: []string{"node-0", "node-1"}})
	for _, node := range readNodes(t, run) {
		if node.Closed() {
			t.Errorf("%+v", node)
		}
	}
}

func readNodes(t *testing.T, run slurmcli.Runner) []slurm.Node {
	t.Helper()
	nodes, err := run.Nodes(t.Context())
	if err != nil || len(nodes) != 2 {
		t.Fatalf("%+v, %v", nodes, err)
	}
	return nodes
}
