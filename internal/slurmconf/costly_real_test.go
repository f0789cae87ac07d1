//go:build slurm

package slurmconf_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// TestRealCostlyKeysCostJobs changes the costly settings below a job that has not used its second node yet, and shows
// what happens to the job with KeepForJobs, and without.
func TestRealCostlyKeysCostJobs(t *testing.T) {
	for _, version := range images.Versions {
		for key, test := range map[string]struct {
			value string
			// lost waits until the job is lost.
			lost func(t *testing.T, slurm *slurmnet.Cluster, job string)
		}{
			"PrologFlags": {"Contain", func(t *testing.T, slurm *slurmnet.Cluster, job string) {
				t.Helper()
				finish(t, slurm, job)
				jobHas(t, slurm, job, "launch_failed_requeued_held") // and the node is drained
			}},
			"SlurmdSpoolDir": {"/var/spool/other", func(t *testing.T, slurm *slurmnet.Cluster, job string) {
				t.Helper()
				slurm.WaitFor(t, "slurmd to forget the job", func(ctx context.Context) error {
					if first, err := slurm.Nodes[0].Run(ctx, "scontrol", "listpids", job); err == nil {
						return fmt.Errorf("it has the processes %s", first)
					}
					return nil
				})
			}},
		} {
			t.Run(version+"/"+key, func(t *testing.T) {
				t.Parallel()
				slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 2, ExtraConf: "MessageTimeout=2"})
				before := parse(t, slurm.Slurmctld.MustRun(t, "cat", "/etc/slurm/slurm.conf"))
				changed := before
				changed.Set(key, test.value)
				kept, waiting := slurmconf.KeepForJobs(changed, before, nil)
				if len(waiting) != 1 || waiting[0] != key {
					t.Fatalf("%q wait", waiting)
				}
				job := startJob(t, slurm)
				reconfigure(t, slurm, kept)
				finish(t, slurm, job)
				jobHas(t, slurm, job, "JobState=COMPLETED ")

				job = startJob(t, slurm)
				reconfigure(t, slurm, changed)
				test.lost(t, slurm, job)
			})
		}
	}
}

// A job keeps its second node while the line of that node is removed or changed, because KeepNodes keeps the line. What
// it costs otherwise is in docs/reference/change-costs.md.
func TestRealNodeLinesAreKeptForJobs(t *testing.T) {
	const line = "CPUs=2 RealMemory=500"
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 2, NodeLine: line})
			text := slurm.Slurmctld.MustRun(t, "cat", "/etc/slurm/slurm.conf")
			for _, second := range []string{"", "NodeName=node-1 CPUs=1 RealMemory=500", "NodeName=node-1 Weight=5 " + line} {
				wanted := parse(t, strings.Replace(text, "node-[0-1] "+line, "node-0 "+line+"\n"+second, 1))
				kept, _ := slurmconf.KeepNodes(wanted, parse(t, text), func(string) bool { return false },
					func(string) bool { return true })
				job := startJob(t, slurm)
				reconfigure(t, slurm, kept)
				finish(t, slurm, job)
				jobHas(t, slurm, job, "JobState=COMPLETED ")
			}
		})
	}
}

// A lower MaxJobCount drops the jobs above it, and KeepMaxJobCount prevents that.
func TestRealLowerMaxJobCountDropsJobs(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 1})
			before := parse(t, slurm.Slurmctld.MustRun(t, "cat", "/etc/slurm/slurm.conf"))
			for range 3 {
				submit(t, slurm, "--hold")
			}
			// drops waits until there are fewer than three jobs, or as many.
			drops := func(want bool) {
				t.Helper()
				slurm.WaitFor(t, fmt.Sprintf("that jobs are dropped: %t", want), func(ctx context.Context) error {
					output, err := slurm.Login.Run(ctx, "squeue", "--noheader")
					if is := strings.Count(output, "\n"); err == nil && (is < 3) != want {
						err = fmt.Errorf("there are %d", is)
					}
					return err
				})
			}
			changed := before
			changed.Set("MaxJobCount", "2")
			kept, keeps := slurmconf.KeepMaxJobCount(changed, before)
			if !keeps {
				t.Error("it is not kept")
			}
			reconfigure(t, slurm, kept)
			drops(false)
			reconfigure(t, slurm, changed)
			drops(true)
		})
	}
}

// startJob starts a job on two nodes, of which it uses one until finish.
func startJob(t *testing.T, slurm *slurmnet.Cluster) string {
	t.Helper()
	job := slurm.Login.MustRun(t, "sbatch", "--parsable", "--nodes=2", "--chdir=/tmp", "--output=/dev/null",
		"--wrap=touch started-$SLURM_JOB_ID; until [ -f finish-$SLURM_JOB_ID ]; do sleep 0.1; done; srun true")
	slurm.WaitFor(t, "the job to start", func(ctx context.Context) error {
		for _, node := range slurm.Nodes {
			if _, err := node.Run(ctx, "test", "-f", "/tmp/started-"+job); err == nil {
				return nil
			}
		}
		return errors.New("it has not started on any node")
	})
	return job
}

// finish lets a job use its second node, and end.
func finish(t *testing.T, slurm *slurmnet.Cluster, job string) {
	t.Helper()
	for _, node := range slurm.Nodes {
		node.MustRun(t, "touch", "/tmp/finish-"+job)
	}
}

// jobHas waits until Slurm describes a job with a text.
func jobHas(t *testing.T, slurm *slurmnet.Cluster, job, text string) {
	t.Helper()
	slurm.WaitFor(t, "job "+job+" to have "+text, func(ctx context.Context) error {
		output, err := slurm.Login.Run(ctx, "scontrol", "show", "job", job)
		if err == nil && !strings.Contains(output, text) {
			err = fmt.Errorf("%s", output)
		}
		return err
	})
}

// reconfigure waits until all slurmds run with a configuration.
func reconfigure(t *testing.T, slurm *slurmnet.Cluster, document slurmconf.Document) {
	t.Helper()
	starts := func(node *slurmnet.Daemon) int { return strings.Count(node.Logs(), "slurmd started on") }
	before := map[*slurmnet.Daemon]int{}
	for _, node := range slurm.Nodes {
		before[node] = starts(node)
	}
	slurm.Slurmctld.Write(t, "/etc/slurm/slurm.conf", document.Render())
	slurm.Login.MustRun(t, "scontrol", "reconfigure")
	for node, count := range before {
		slurm.WaitFor(t, node.Name+" to be reconfigured", func(context.Context) error {
			if starts(node) == count {
				return fmt.Errorf("it has started %d times", count)
			}
			return nil
		})
	}
}
