//go:build slurm

package slurmnet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/hack/repo"
)

// TestWeeklySummary runs the command for a weekly summary in docs/monitoring.md, as it is printed there, after a job
// that has used some CPU time and memory.
func TestWeeklySummary(t *testing.T) {
	summary := weeklySummary(t)
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			cluster := startVersion(t, version, Options{
				Nodes: 1, Accounting: true, ExtraConf: "JobAcctGatherFrequency=task=1",
			})
			// A shell that holds 40 MB and counts, then waits as long.
			job := mustRun(t, cluster, "sbatch", "--parsable", "--ntasks=1", "--mem=200M", "--wrap", `srun sh -c '
begin=$(date +%s); x=$(head -c 40000000 /dev/zero | tr "\0" x)
i=0; while [ $i -lt 3000000 ]; do i=$((i + 1)); done
sleep $(($(date +%s) - begin + 3)); echo ${#x}'`)
			waitForJob(t, cluster, job, "COMPLETED")
			cluster.WaitFor(t, "a summary with the job", func(ctx context.Context) error {
				output, err := cluster.Run(ctx, "sh", "-c", summary)
				if err != nil {
					return err
				}
				return checkSummary(output)
			})
		})
	}
}

// weeklySummary returns the command in the documentation.
func weeklySummary(t *testing.T) string {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```sh\nsacct ")
	command, _, ends := strings.Cut(rest, "```")
	if !found || !ends {
		t.Fatal("docs/monitoring.md has no command that begins with sacct")
	}
	return "sacct " + command
}

// checkSummary checks the row of root: one job, whose CPU time and memory were used in part.
func checkSummary(output string) error {
	for line := range strings.Lines(output) {
		cells := strings.Fields(line)
		if len(cells) != 6 || cells[0] != "root" {
			continue
		}
		var errs []error
		for column, limits := range map[int][2]float64{1: {1, 1}, 3: {5, 95}, 4: {10, 90}} {
			value, err := strconv.ParseFloat(strings.TrimSuffix(cells[column], "%"), 64)
			if err == nil && (value < limits[0] || value > limits[1]) {
				err = fmt.Errorf("column %d is %v", column, value)
			}
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("%w in %s", err, output)
		}
		return nil
	}
	return fmt.Errorf("root is not in %q", output)
}
