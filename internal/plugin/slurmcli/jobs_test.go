package slurmcli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// printed returns a job as squeue prints it.
func printed(fields ...string) string { return strings.Join(fields, fieldEnd) + jobEnd + "\n" }

// running is a job that runs.
var running = []string{
	"4711", "4711", "train\nme", "alice", "physics", "gpu", "normal", "RUNNING", "None", "gpu-[3-4]", "2", "16", "64G",
	"gres/gpu:2", "(null)", "", "", "(null)", "(null)", "1200", "4:00:00", "1772701200", "1772704800", "1772719200",
}

// with returns fields with one replaced.
func with(fields []string, at int, value string) []string {
	changed := append([]string{}, fields...)
	changed[at] = value
	return changed
}

func TestJobsAreParsed(t *testing.T) {
	submitted, start, end := time.Unix(1772701200, 0).UTC(), time.Unix(1772704800, 0).UTC(), time.Unix(1772719200, 0).UTC()
	want := Job{
		ID: "4711", Number: 4711, Name: "train\nme", User: "alice", Account: "physics", Partition: "gpu", QOS: "normal",
		State: "RUNNING", Nodes: "gpu-[3-4]", NodeCount: 2, CPUs: 16, Memory: "64G", TRES: "gres/gpu:2", Priority: 1200,
		Limit: "4:00:00", Submitted: &submitted, Start: &start, End: &end,
	}
	jobs, err := parseJobs(printed(running...) + printed(with(running, 0, "4711_[3-9]")...))
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%d jobs: %v", len(jobs), err)
	}
	if diff := cmp.Diff(want, jobs[0]); diff != "" {
		t.Error(diff)
	}
	if jobs[1].ID != "4711_[3-9]" || jobs[1].Number != 4711 {
		t.Errorf("array tasks: %+v", jobs[1])
	}
}

func TestValuesOfJobs(t *testing.T) {
	for name, test := range map[string]struct {
		field int
		value string
		check func(*Job) bool
	}{
		"a range of nodes":         {10, "1-4", func(job *Job) bool { return job.NodeCount == 1 }},
		"thousands of CPUs":        {11, "2K", func(job *Job) bool { return job.CPUs == 2048 }},
		"an end that is not known": {23, "N/A", func(job *Job) bool { return job.End == nil }},
		"no time limit":            {20, "UNLIMITED", (*Job).Unlimited},
		"no reason":                {8, "None", func(job *Job) bool { return job.Reason == "" }},
		"a reason with details":    {8, "Down, x", func(job *Job) bool { return job.Reason == "Down, x" }},
		"a name with a bar":        {2, "a|b", func(job *Job) bool { return job.Name == "a|b" }},
	} {
		jobs, err := parseJobs(printed(with(running, test.field, test.value)...))
		if err != nil || len(jobs) != 1 || !test.check(&jobs[0]) {
			t.Errorf("%s: %+v, %v", name, jobs, err)
		}
	}
}

func TestUnexpectedOutputOfSqueueIsAnError(t *testing.T) {
	for name, output := range map[string]string{
		"too few fields": printed(running[1:]...),
		"no number":      printed(with(running, 1, "x")...),
		"a message":      "slurm_load_jobs error: Unable to contact slurm controller",
	} {
		if jobs, err := parseJobs(output); err == nil {
			t.Errorf("%s: %+v", name, jobs)
		}
	}
	if jobs, err := parseJobs("\n"); err != nil || len(jobs) != 0 {
		t.Errorf("an empty queue: %+v, %v", jobs, err)
	}
}

func TestJobThatSlurmForgotIsNone(t *testing.T) {
	run := Runner(func(context.Context, ...string) ([]byte, error) {
		return nil, &Error{Command: "squeue", Code: 1, Said: "slurm_load_jobs error: Invalid job id specified"}
	})
	if jobs, err := run.Job(t.Context(), "7"); err != nil || jobs != nil {
		t.Errorf("%+v, %v", jobs, err)
	}
}
