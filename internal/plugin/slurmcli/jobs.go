package slurmcli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Job is a job as squeue shows it.
type Job struct {
	// ID is the number of the job; an array task has its index, and tasks that have not started are one entry: 7_[3-9].
	ID string `json:"id"`
	// Number is the number for scontrol and scancel.
	Number    int64  `json:"number"`
	Name      string `json:"name"`
	User      string `json:"user"`
	Account   string `json:"account,omitempty"`
	Partition string `json:"partition"`
	QOS       string `json:"qos,omitempty"`
	State     string `json:"state"`
	// Reason is Slurm's word for why the job waits, or ended as it did.
	Reason string `json:"reason,omitempty"`
	// Nodes is the hostlist expression of its nodes, and NodeCount their number: while it is pending, how many it needs.
	Nodes     string `json:"nodes,omitempty"`
	NodeCount int    `json:"nodeCount"`
	CPUs      int    `json:"cpus"`
	Memory    string `json:"memory,omitempty"`
	// TRES are the GPUs and other devices that it asks for, per node.
	TRES string `json:"tres,omitempty"`
	// Features, Required and Excluded are what it asks for: features of nodes, and nodes.
	Features string `json:"features,omitempty"`
	Required string `json:"requiredNodes,omitempty"`
	Excluded string `json:"excludedNodes,omitempty"`

	Dependency  string `json:"dependency,omitempty"`
	Reservation string `json:"reservation,omitempty"`
	Priority    int64  `json:"priority"`
	// Limit is the time limit as Slurm writes it, such as 1-00:00:00 or UNLIMITED.
	Limit string `json:"limit"`
	// Start of a pending job is when Slurm expects it to start; End of a running one is when its limit expires. Both are
	// nil if not known.
	Submitted *time.Time `json:"submitted,omitempty"`
	Start     *time.Time `json:"start,omitempty"`
	End       *time.Time `json:"end,omitempty"`
}

// Unlimited reports whether the job has no time limit, so that End is a date that Slurm made up.
func (j *Job) Unlimited() bool { return j.Limit == "UNLIMITED" }

// Pending reports whether the job waits.
func (j *Job) Pending() bool { return j.State == "PENDING" }

// Separators that no value contains. Names of jobs may contain anything else, such as line breaks.
const (
	fieldEnd = "\x1f"
	jobEnd   = "\x1e"
)

// A column is a field of squeue's format, and how it is read.
type column struct {
	code string
	read func(*Job, string) error
}

var columns = []column{
	{"%i", func(j *Job, v string) error { j.ID = v; return nil }},
	{"%A", func(j *Job, v string) (err error) { j.Number, err = strconv.ParseInt(v, 10, 64); return err }},
	text("%j", func(j *Job) *string { return &j.Name }),
	text("%u", func(j *Job) *string { return &j.User }),
	text("%a", func(j *Job) *string { return &j.Account }),
	text("%P", func(j *Job) *string { return &j.Partition }),
	text("%q", func(j *Job) *string { return &j.QOS }),
	text("%T", func(j *Job) *string { return &j.State }),
	text("%r", func(j *Job) *string { return &j.Reason }),
	text("%N", func(j *Job) *string { return &j.Nodes }),
	count("%D", func(j *Job) *int { return &j.NodeCount }),
	count("%C", func(j *Job) *int { return &j.CPUs }),
	text("%m", func(j *Job) *string { return &j.Memory }),
	text("%b", func(j *Job) *string { return &j.TRES }),
	text("%f", func(j *Job) *string { return &j.Features }),
	text("%n", func(j *Job) *string { return &j.Required }),
	text("%x", func(j *Job) *string { return &j.Excluded }),
	text("%E", func(j *Job) *string { return &j.Dependency }),
	text("%v", func(j *Job) *string { return &j.Reservation }),
	{"%Q", func(j *Job, v string) (err error) { j.Priority, err = strconv.ParseInt(v, 10, 64); return err }},
	text("%l", func(j *Job) *string { return &j.Limit }),
	moment("%V", func(j *Job) **time.Time { return &j.Submitted }),
	moment("%S", func(j *Job) **time.Time { return &j.Start }),
	moment("%e", func(j *Job) **time.Time { return &j.End }),
}

// text reads a text; squeue has several words for none.
func text(code string, field func(*Job) *string) column {
	return column{code, func(job *Job, value string) error {
		switch value {
		case "(null)", "N/A", "None", "n/a":
			value = ""
		}
		*field(job) = value
		return nil
	}}
}

// count reads a number, which squeue may write as a range, such as 1-4, or with a suffix, such as 2K.
func count(code string, field func(*Job) *int) column {
	return column{code, func(job *Job, value string) error {
		value, _, _ = strings.Cut(value, "-")
		factor := 1
		if digits, thousands := strings.CutSuffix(value, "K"); thousands {
			value, factor = digits, 1024
		}
		number, err := strconv.Atoi(value)
		*field(job) = number * factor
		return err
	}}
}

// moment reads a time; with SLURM_TIME_FORMAT=%s it is in seconds since 1970.
func moment(code string, field func(*Job) **time.Time) column {
	return column{code, func(job *Job, value string) error {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds <= 0 {
			return nil //nolint:nilerr // N/A, or a word such as Unknown
		}
		at := time.Unix(seconds, 0).UTC()
		*field(job) = &at
		return nil
	}}
}

// Jobs reads the jobs that squeue lists with some arguments, such as --nodelist=gpu-3.
func (run Runner) Jobs(ctx context.Context, arguments ...string) ([]Job, error) {
	printed, err := run(ctx, append(Squeue(), arguments...)...)
	if err != nil {
		return nil, err
	}
	return parseJobs(string(printed))
}

// OnNodes makes squeue list the jobs that have processes on nodes, or may have.
const OnNodes = "--states=running,suspended,completing,configuring,stopped,signaling,stage_out"

// Job reads one job, which may have ended; nil if slurmctld does not have it. The number of an array stands for all of
// its tasks.
func (run Runner) Job(ctx context.Context, id string) ([]Job, error) {
	jobs, err := run.Jobs(ctx, "--states=all", "--jobs="+id)
	if failure, failed := errors.AsType[*Error](err); failed && strings.Contains(failure.Said, "Invalid job id") {
		return nil, nil
	}
	return jobs, err
}

// Squeue returns the command that prints jobs for parseJobs.
func Squeue() []string {
	codes := make([]string, len(columns))
	for i, column := range columns {
		codes[i] = column.code
	}
	return []string{
		"env", "SLURM_TIME_FORMAT=%s", "squeue", "--noheader", "--format=" + strings.Join(codes, fieldEnd) + jobEnd,
	}
}

func parseJobs(printed string) ([]Job, error) {
	var jobs []Job
	for record := range strings.SplitSeq(printed, jobEnd) {
		record = strings.Trim(record, "\r\n")
		if record == "" {
			continue
		}
		values := strings.Split(record, fieldEnd)
		if len(values) != len(columns) {
			return nil, fmt.Errorf("reading jobs: squeue printed %d fields instead of %d: %.80q", len(values), len(columns),
				record)
		}
		var job Job
		for i, column := range columns {
			if err := column.read(&job, strings.TrimSpace(values[i])); err != nil {
				return nil, fmt.Errorf("reading jobs: field %s is %.40q: %w", column.code, values[i], err)
			}
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}
