package logs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/plugin/logs"
)

var (
	slurmctld = logs.Source{Pod: "slurm-controller-0", Container: "slurmctld"}
	slurmd    = logs.Source{Pod: "gpu-3", Container: "slurmd", SlurmNode: "gpu-3"}
)

// scan returns the lines of a log.
func scan(t *testing.T, source logs.Source, text string) []logs.Line {
	t.Helper()
	var lines []logs.Line
	err := logs.Scan(source, strings.NewReader(text), func(line logs.Line) bool {
		lines = append(lines, line)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestLogsAreMergedByTime(t *testing.T) {
	merged := logs.Merge(
		scan(t, slurmctld, "2026-03-05T12:00:01.5Z sched: Allocate JobId=7 NodeList=gpu-3\n2026-03-05T12:00:03Z _job_complete: JobId=7 done\n"),
		scan(t, slurmd, "2026-03-05T12:00:02Z launch task StepId=7.0\nwithout a time\n"))
	var got []string
	for i := range merged {
		got = append(got, merged[i].String())
	}
	want := []string{
		"2026-03-05T12:00:01.500Z  slurm-controller-0/slurmctld  sched: Allocate JobId=7 NodeList=gpu-3",
		"2026-03-05T12:00:02.000Z  gpu-3  launch task StepId=7.0",
		"2026-03-05T12:00:02.000Z  gpu-3  without a time",
		"2026-03-05T12:00:03.000Z  slurm-controller-0/slurmctld  _job_complete: JobId=7 done",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFilter(t *testing.T) {
	for name, test := range map[string]struct {
		node, job string
		source    logs.Source
		text      string
		want      bool
	}{
		"everything without a filter":           {"", "", slurmctld, "anything", true},
		"a line that names the job":             {"", "7", slurmctld, "sched: Allocate JobId=7 NodeList=gpu-3", true},
		"a step of the job":                     {"", "7", slurmd, "launch task StepId=7.0 request", true},
		"a step in brackets":                    {"", "7", slurmd, "[7.batch] done with step", true},
		"a task of an array":                    {"", "7_3", slurmctld, "JobId=7_3 WEXITSTATUS 0", true},
		"not a job with another number":         {"", "7", slurmctld, "sched: Allocate JobId=70", false},
		"not the number alone":                  {"", "7", slurmctld, "7 nodes are idle", false},
		"a line that names the node":            {"gpu-3", "", slurmctld, "error: Nodes gpu-3 not responding", true},
		"not a node whose name begins the same": {"gpu-3", "", slurmctld, "error: Nodes gpu-30 not responding", false},
		"every line of the node's slurmd":       {"gpu-3", "", slurmd, "slurmd started", true},
		"a job on the node":                     {"gpu-3", "7", slurmd, "slurmd started", false},
	} {
		t.Run(name, func(t *testing.T) {
			line := logs.Line{Source: test.source, Text: test.text}
			if got := logs.NewFilter(test.node, test.job).Keep(&line); got != test.want {
				t.Errorf("kept: %v", got)
			}
		})
	}
}
