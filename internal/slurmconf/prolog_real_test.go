//go:build slurm

package slurmconf_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// TestRealNewPrologFlagsEndJobs adds flags below a job that has not used its second node yet, and shows what happens to
// it without KeepPrologFlags.
func TestRealNewPrologFlagsEndJobs(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 2, ExtraConf: "MessageTimeout=2"})
			text := slurm.Slurmctld.MustRun(t, "cat", "/etc/slurm/slurm.conf")
			without, with := parse(t, text), parse(t, text+"\nPrologFlags=Contain\n")
			kept, differs := slurmconf.KeepPrologFlags(with, without)
			if !differs {
				t.Fatal("the flags are not kept")
			}
			for _, test := range []struct {
				name     string
				document slurmconf.Document
				outcome  string
			}{
				{"kept", kept, "JobState=COMPLETED "},
				{"changed", with, "launch_failed_requeued_held"}, // and the node is drained
			} {
				reconfigure(t, slurm, without)
				job := slurm.Login.MustRun(t, "sbatch", "--parsable", "--nodes=2", "--chdir=/tmp", "--output=/dev/null",
					"--wrap=touch started-"+test.name+"; until [ -f finish-"+test.name+" ]; do sleep 0.1; done; srun true")
				slurm.WaitFor(t, "the job to start", func(ctx context.Context) error {
					_, err := slurm.Nodes[0].Run(ctx, "test", "-f", "/tmp/started-"+test.name)
					if err != nil {
						_, err = slurm.Nodes[1].Run(ctx, "test", "-f", "/tmp/started-"+test.name)
					}
					return err
				})
				reconfigure(t, slurm, test.document)
				for _, node := range slurm.Nodes {
					node.MustRun(t, "touch", "/tmp/finish-"+test.name)
				}
				slurm.WaitFor(t, "the outcome "+test.outcome, func(ctx context.Context) error {
					output, err := slurm.Login.Run(ctx, "scontrol", "show", "job", job)
					if err == nil && !strings.Contains(output, test.outcome) {
						err = fmt.Errorf("%s", output)
					}
					return err
				})
			}
		})
	}
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
