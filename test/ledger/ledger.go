// Package ledger keeps the books of a stream of jobs, so that "no job was lost" is a finding and not a hope.
//
// A stream submits one job after another from a login pod, in the background: it outlives an API server that is away. It notes
// the number of each job that Slurm has accepted. At the end, accounting says what became of every one of them.
package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Stream is a stream of jobs of one name.
type Stream struct {
	// Name is the jobs' own.
	Name string
	// Partition is where they run.
	Partition string
	// Lengths are how many seconds they take, by turns. One begins every second and a half, and each takes one processor and
	// little memory, so that two nodes are enough for jobs of five seconds.
	Lengths []int
}

func (s Stream) directory() string { return "/tmp/ledger-" + s.Name }

// Start is the command that starts the stream; it returns at once.
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
    job=$(sbatch --parsable --job-name=%s --partition=%s --mem=64M --output=/dev/null --wrap="sleep $length" 2>>refused) && echo "$job" >>accepted
    sleep 1.5
  done;
done
touch ended`, s.directory(), strings.Join(lengths, " "), s.Name, s.Partition)
	return []string{"sh", "-c", fmt.Sprintf(`rm -rf %[1]s; mkdir %[1]s; touch %[1]s/accepted %[1]s/refused; setsid sh -c '%[2]s' >/dev/null 2>&1 </dev/null &`, s.directory(), loop)}
}

// Pause is the command that makes the stream submit nothing until Resume.
func (s Stream) Pause() []string { return []string{"touch", s.directory() + "/pause"} }

// Resume is the command that ends Pause.
func (s Stream) Resume() []string { return []string{"rm", "-f", s.directory() + "/pause"} }

// End is the command that ends the stream, and waits until it has.
func (s Stream) End() []string {
	return []string{"sh", "-c", fmt.Sprintf("cd %s && touch end && until [ -e ended ]; do sleep 0.2; done", s.directory())}
}

// Accepted is the command that prints the numbers of the jobs that Slurm has accepted.
func (s Stream) Accepted() []string { return []string{"cat", s.directory() + "/accepted"} }

// Accounting is the command that prints what became of them.
func (s Stream) Accounting() []string {
	return []string{
		"sacct", "--noheader", "--parsable2", "--allocations", "--duplicates", "--starttime=now-7days", "--name=" + s.Name,
		"--format=jobidraw,state,restarts,exitcode,nodelist",
	}
}

// A Verdict is what became of the jobs of a stream. Each job is in one of the lists.
type Verdict struct {
	// Completed have run once, from their beginning to their end.
	Completed []string
	// Open have not ended yet.
	Open []string
	// Requeued have begun more than once.
	Requeued []string
	// Lost have ended otherwise, or accounting knows nothing of them; each with what it says.
	Lost []string
}

// Judge compares the numbers of the jobs that were accepted with what accounting says. Jobs that Slurm took without the stream
// learning of it, because the answer was lost, count too.
func Judge(accepted, accounting string) (Verdict, error) {
	begun := map[string][]string{} // what accounting says of each time that a job began
	for line := range strings.Lines(accounting) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) != 5 {
			return Verdict{}, fmt.Errorf("accounting says %q", line)
		}
		begun[fields[0]] = append(begun[fields[0]], strings.Join(fields[1:], "|"))
	}
	jobs := strings.Fields(accepted)
	for job, times := range begun {
		if !slices.Contains(jobs, job) && len(times) == 1 && times[0] == refused {
			continue
		}
		jobs = append(jobs, job)
	}
	slices.Sort(jobs)
	var verdict Verdict
	for _, job := range slices.Compact(jobs) {
		verdict.add(job, begun[job])
	}
	return verdict, nil
}

// refused is what accounting says of a job that Slurm 24.11 did not accept, for lack of nodes: it never began.
const refused = "FAILED|0|1:0|None assigned"

func (v *Verdict) add(job string, begun []string) {
	if len(begun) == 0 {
		v.Lost = append(v.Lost, job+" unknown")
		return
	}
	last := strings.Split(begun[len(begun)-1], "|")
	state, restarts, exit := last[0], last[1], last[2]
	switch {
	case len(begun) > 1 || restarts != "0":
		v.Requeued = append(v.Requeued, job+" "+strings.Join(begun, ", "))
	case state == "COMPLETED" && exit == "0:0":
		v.Completed = append(v.Completed, job)
	case slices.Contains([]string{"PENDING", "RUNNING", "COMPLETING", "SUSPENDED"}, state):
		v.Open = append(v.Open, job)
	default:
		v.Lost = append(v.Lost, job+" "+begun[0])
	}
}

// String counts, and names those that have not simply completed.
func (v Verdict) String() string {
	all := len(v.Completed) + len(v.Open) + len(v.Requeued) + len(v.Lost)
	text := fmt.Sprintf("%d jobs: %d completed, %d open, %d requeued, %d lost", all, len(v.Completed), len(v.Open), len(v.Requeued), len(v.Lost))
	return strings.Join(slices.Concat([]string{text}, v.Requeued, v.Lost), "; ")
}
