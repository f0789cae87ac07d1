package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

// A Run is one run of a job. Accounting has whole seconds.
type Run struct {
	Job        string
	Nodes      []string
	Start, End time.Time // End is zero while it runs
}

// AllRuns returns the command that prints when and where every job of the cluster ran.
func AllRuns() []string {
	return []string{
		"env", "TZ=UTC", "sacct", "--noheader", "--parsable2", "--allocations", "--duplicates", "--allusers",
		"--starttime=now-7days",
		"--format=jobidraw,nodelist,start,end",
	}
}

// ParseRuns parses the output of AllRuns. Jobs that have not started are omitted.
func ParseRuns(accounting string) ([]Run, error) {
	var runs []Run
	for line := range strings.Lines(accounting) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) != 4 {
			return nil, fmt.Errorf("unexpected accounting record %q", line)
		}
		run, started, err := parseRun(fields)
		if err != nil {
			return nil, fmt.Errorf("unexpected accounting record %q: %w", line, err)
		}
		if started {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

func parseRun(fields []string) (run Run, started bool, err error) {
	const never, format, maxNodes = "Unknown", "2006-01-02T15:04:05", 10_000
	run.Job = fields[0]
	if fields[1] == "None assigned" || fields[1] == "" || fields[2] == never || fields[2] == "None" {
		return run, false, nil
	}
	if run.Nodes, err = hostlist.Expand(fields[1], maxNodes); err != nil {
		return run, false, err
	}
	if run.Start, err = time.Parse(format, fields[2]); err != nil {
		return run, false, err
	}
	if fields[3] != never {
		run.End, err = time.Parse(format, fields[3])
	}
	return run, true, err
}

// Covers reports whether a job certainly ran on a node at a moment. The second in which it started does not count,
// because accounting does not have the exact time.
func (r Run) Covers(node string, moment time.Time) bool {
	return slices.Contains(r.Nodes, node) && !moment.Before(r.Start.Add(time.Second)) &&
		(r.End.IsZero() || moment.Before(r.End))
}
