// Package ledger tracks a stream of jobs, so that tests can prove that no job was lost.
//
// A stream submits one job after another in the background of a login pod, so that it survives an outage of the API
// server. It records the id of each job that Slurm has accepted. At the end, accounting shows what happened to each of
// them.
package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Stream is a stream of jobs with the same name.
type Stream struct {
	// Name is the name of the jobs.
	Name string
	// Partition is the partition of the jobs.
	Partition string
	// Lengths are the durations of the jobs in seconds, in turn. A job is submitted every 1.5 seconds and uses one CPU
	// and little memory, so two nodes are enough for jobs of five seconds.
	Lengths []int
	// Interval is the time between jobs, if it is not 1.5 seconds.
	Interval time.Duration
}

// defaultInterval is the time between jobs.
const defaultInterval = 1500 * time.Millisecond

func (s Stream) directory() string { return "/tmp/ledger-" + s.Name }

// Start returns the command that starts the stream; it exits immediately.
func (s Stream) Start() []string {
	lengths := make([]string, len(s.Lengths))
	for i, length := range s.Lengths {
		lengths[i] = strconv.Itoa(length)
	}
	loop := fmt.Sprintf(`cd %s
until [ -e end ]; do
  for length in %s; do
    while [ -e pause ] && ! [ -e end ]; do sleep 0.2; done
    [ -e end ] && break
    job=$(sbatch --parsable --job-name=%s --partition=%s --mem=64M --output=/dev/null \
        --wrap="sleep $length" 2>>refused) && echo "$job" >>accepted
    sleep %g
  done;
done
touch ended`, s.directory(), strings.Join(lengths, " "), s.Name, s.Partition,
		cmp.Or(s.Interval, defaultInterval).Seconds())
	return []string{"sh", "-c",
		fmt.Sprintf(
			`rm -rf %[1]s; mkdir %[1]s; touch %[1]s/accepted %[1]s/refused; setsid sh -c '%[2]s' >/dev/null 2>&1 </dev/null &`, s.directory(), loop)}
}

// Pause returns the command that makes the stream submit nothing until Resume.
func (s Stream) Pause() []string { return []string{"touch", s.directory() + "/pause"} }

// Resume returns the command that undoes Pause.
func (s Stream) Resume() []string { return []string{"rm", "-f", s.directory() + "/pause"} }

// End returns the command that stops the stream and waits until it has stopped.
func (s Stream) End() []string {
	return []string{
		"sh", "-c", fmt.Sprintf("cd %s && touch end && until [ -e ended ]; do sleep 0.2; done", s.directory()),
	}
}

// Accepted returns the command that prints the ids of the jobs that Slurm has accepted.
func (s Stream) Accepted() []string { return []string{"cat", s.directory() + "/accepted"} }

// Accounting returns the command that prints the accounting records of the jobs.
func (s Stream) Accounting() []string {
	return []string{
		"sacct", "--noheader", "--parsable2", "--allocations", "--duplicates", "--starttime=now-7days", "--name=" +
			s.Name,
		"--format=jobidraw,state,restarts,exitcode,nodelist",
	}
}

// A Verdict is the outcome of a stream. Each job is in one of the lists.
type Verdict struct {
	// Completed have run once and completed.
	Completed []string
	// Open have not ended yet.
	Open []string
	// Requeued were started more than once.
	Requeued []string
	// Lost have ended otherwise, or are not in accounting; each with its record.
	Lost []string
}

// Judge compares the ids of the accepted jobs with their accounting records. Jobs that Slurm accepted without the
// stream recording it, because the response was lost, count too.
func Judge(accepted, accounting string) (Verdict, error) {
	starts := map[string][]string{} // the accounting records of all starts of a job
	for line := range strings.Lines(accounting) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) != 5 {
			return Verdict{}, fmt.Errorf("unexpected accounting record %q", line)
		}
		starts[fields[0]] = append(starts[fields[0]], strings.Join(fields[1:], "|"))
	}
	jobs := strings.Fields(accepted)
	for job, records := range starts {
		if !slices.Contains(jobs, job) && len(records) == 1 && records[0] == refused {
			continue
		}
		jobs = append(jobs, job)
	}
	slices.Sort(jobs)
	var verdict Verdict
	for _, job := range slices.Compact(jobs) {
		verdict.add(job, starts[job])
	}
	return verdict, nil
}

// refused is the accounting record of a job that Slurm 24.11 did not accept for lack of nodes: it never started.
const refused = "FAILED|0|1:0|None assigned"

func (v *Verdict) add(job string, starts []string) {
	if len(starts) == 0 {
		v.Lost = append(v.Lost, job+" unknown")
		return
	}
	last := strings.Split(starts[len(starts)-1], "|")
	state, restarts, exit := last[0], last[1], last[2]
	switch {
	case len(starts) > 1 || restarts != "0":
		v.Requeued = append(v.Requeued, job+" "+strings.Join(starts, ", "))
	case state == "COMPLETED" && exit == "0:0":
		v.Completed = append(v.Completed, job)
	case slices.Contains([]string{"PENDING", "RUNNING", "COMPLETING", "SUSPENDED"}, state):
		v.Open = append(v.Open, job)
	default:
		v.Lost = append(v.Lost, job+" "+starts[0])
	}
}

// String counts the jobs, and names those that were requeued or lost.
func (v Verdict) String() string {
	all := len(v.Completed) + len(v.Open) + len(v.Requeued) + len(v.Lost)
	text := fmt.Sprintf("%d jobs: %d completed, %d open, %d requeued, %d lost", all, len(v.Completed), len(v.Open),
		len(v.Requeued), len(v.Lost))
	return strings.Join(slices.Concat([]string{text}, v.Requeued, v.Lost), "; ")
}
