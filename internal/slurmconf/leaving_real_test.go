//go:build slurm

package slurmconf_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// TestRealPartitionRemovalKeepsJobs removes partitions from the configuration of a slurmctld with running and
// pending jobs. It also shows what happens to the jobs otherwise.
func TestRealPartitionRemovalKeepsJobs(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 1})
			text := slurm.Slurmctld.MustRun(t, "cat", "/etc/slurm/slurm.conf")
			reconfigure := func(document slurmconf.Document) {
				t.Helper()
				slurm.Slurmctld.Write(t, "/etc/slurm/slurm.conf", document.Render())
				slurm.Login.MustRun(t, "scontrol", "reconfigure")
			}
			without, with := parse(t, text), parse(t,
				text+"\nNodeSet=nodes Nodes=node-0\nPartitionName=set Nodes=nodes\nPartitionName=every Nodes=ALL\n")
			reconfigure(with)
			jobs := map[string]string{}
			for _, partition := range []string{"set", "every"} {
				running := submit(t, slurm, "--partition="+partition)
				jobs[running] = "RUNNING"
				jobs[submit(t, slurm, "--partition="+partition, "--dependency=afterany:"+running)] = "PENDING"
			}
			expectStates := func(states map[string]string) {
				t.Helper()
				for job, want := range states {
					slurm.WaitFor(t, fmt.Sprintf("job %s to be %s", job, want), func(ctx context.Context) error {
						out, err := slurm.Login.Run(ctx, "scontrol", "show", "job", job)
						if err == nil &&
							(!strings.Contains(out, "JobState="+want) || !strings.Contains(out, "Restarts=0")) {
							err = fmt.Errorf("job is %s", out)
						}
						return err
					})
				}
			}
			expectStates(jobs)
			drained, draining := slurmconf.KeepPartitions(without, with, func(string) bool { return false })
			if !slices.Equal(draining, []string{"set", "every"}) {
				t.Fatalf("%v are draining", draining)
			}
			reconfigure(drained)
			expectStates(jobs)
			if out, err := slurm.Login.Run(t.Context(), "sbatch", "--partition=set", "--wrap=true"); err == nil {
				t.Errorf("a draining partition accepts jobs: %s", out)
			}
			reconfigure(without)
			for job := range jobs {
				jobs[job] = "NODE_FAIL"
			}
			expectStates(jobs) // without draining, the jobs are lost
		})
	}
}

// submit submits a long job and returns its number.
func submit(t *testing.T, slurm *slurmnet.Cluster, options ...string) string {
	t.Helper()
	return slurm.Login.MustRun(t,
		append(append([]string{"sbatch", "--parsable", "--mem=10", "--output=/dev/null"}, options...),
			"--wrap=sleep 600")...)
}
