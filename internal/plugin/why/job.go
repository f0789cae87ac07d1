package why

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
)

// A Job explains the state of a job.
type Job struct {
	slurmcli.Job
	// Verdict is the answer in one sentence.
	Verdict string `json:"verdict"`
	Explanation
	// Expected says when Slurm expects a pending job to start.
	Expected string `json:"expected,omitempty"`
	// PartitionNodes counts the nodes of its partition by state, and Closed are those that take no jobs.
	PartitionNodes map[string]int `json:"partitionNodes,omitempty"`
	Closed         []nodes.Node   `json:"closed,omitempty"`
	Notes          []string       `json:"notes,omitempty"`
}

// ExplainJob explains a job. The nodes of the cluster are optional.
func ExplainJob(job *slurmcli.Job, cluster []nodes.Node, now time.Time) Job {
	result := Job{Job: *job}
	who := fmt.Sprintf("Job %s of %s (%s)", job.ID, job.User, job.Name)
	switch job.State {
	case "PENDING":
		explanation, _ := explain(reason(job))
		result.Explanation = fill(explanation, job)
		result.Verdict = fmt.Sprintf("%s is pending: %s", who, result.Meaning)
		result.addExpectation(now)
		if explanation.Nodes {
			result.addNodes(cluster)
		}
	case "RUNNING":
		result.Verdict = fmt.Sprintf("%s runs on %s %s", who, job.Nodes, result.until(now))
	case "COMPLETING":
		result.Verdict = fmt.Sprintf("%s has ended and is being cleaned up on %s", who, job.Nodes)
		result.Starts = "if this lasts, see the log of slurmd on these nodes, and whether processes of the job hang"
	case "CONFIGURING":
		result.Verdict = fmt.Sprintf("%s waits until its nodes %s are ready", who, job.Nodes)
	case "SUSPENDED":
		result.Verdict = fmt.Sprintf("%s is suspended on %s", who, job.Nodes)
		result.Starts = "kubectl slurm -- scontrol resume " + job.ID
	default:
		result.Verdict = fmt.Sprintf("%s has ended: %s", who, job.State)
		if explanation, known := explain(job.Reason); known && job.Reason != "" {
			result.Verdict += "; " + fill(explanation, job).Meaning
		}
	}
	return result
}

// reason returns why a job is pending. Slurm looks at dependencies of a new job only when it schedules it, and until
// then gives another reason.
func reason(job *slurmcli.Job) string {
	preliminary := slices.Contains([]string{"", "None", "Priority", "Resources"}, job.Reason)
	if preliminary && strings.Contains(job.Dependency, "(unfulfilled)") {
		return "Dependency"
	}
	return cmp.Or(job.Reason, "None")
}

// fill replaces the words in angle brackets by those of a job.
func fill(explanation Explanation, job *slurmcli.Job) Explanation {
	none := func(value string) string { return cmp.Or(value, "none") }
	replacer := strings.NewReplacer("<job>", output.Quoted(job.ID), "<partition>", none(job.Partition), "<dependency>",
		none(job.Dependency), "<limit>", none(job.Limit), "<features>", none(job.Features), "<reservation>",
		none(job.Reservation), "<account>", none(job.Account), "<qos>", none(job.QOS), "<user>", none(job.User))
	explanation.Meaning, explanation.Starts = replacer.Replace(explanation.Meaning), replacer.Replace(explanation.Starts)
	return explanation
}

// until says when a running job ends at the latest.
func (j *Job) until(now time.Time) string {
	if j.Unlimited() || j.End == nil {
		return "without a time limit"
	}
	return fmt.Sprintf("until %s at the latest (in %s)", moment(*j.End), duration.HumanDuration(max(j.End.Sub(now), 0)))
}

// addExpectation adds when Slurm expects the job to start, if the backfill scheduler has planned it.
func (j *Job) addExpectation(now time.Time) {
	if j.Start != nil && j.Start.After(now) {
		j.Expected = fmt.Sprintf("Slurm expects it to start at %s (in %s)", moment(*j.Start),
			duration.HumanDuration(j.Start.Sub(now)))
	}
}

// addNodes adds the nodes of the job's partitions.
func (j *Job) addNodes(cluster []nodes.Node) {
	partitions := strings.Split(j.Partition, ",")
	for i := range cluster {
		node := &cluster[i]
		if !slices.ContainsFunc(node.Partitions, func(name string) bool { return slices.Contains(partitions, name) }) {
			continue
		}
		if j.PartitionNodes == nil {
			j.PartitionNodes = map[string]int{}
		}
		switch {
		case node.Closed:
			j.PartitionNodes["closed"]++
			j.Closed = append(j.Closed, *node)
		case strings.HasPrefix(node.State, "IDLE"):
			j.PartitionNodes["idle"]++
		default:
			j.PartitionNodes["in use"]++
		}
	}
}

// shownClosed is how many closed nodes are listed.
const shownClosed = 10

// Draw writes the explanation as text.
func (j *Job) Draw(page *output.Page, now time.Time) {
	page.Line("%s", page.Bold(j.Verdict))
	if j.Starts != "" && j.Pending() {
		page.Line("It starts with %s", j.Starts)
	} else if j.Starts != "" {
		page.Line("What to do: %s", j.Starts)
	}
	if j.Expected != "" {
		page.Line("%s", j.Expected)
	}
	page.Line("")
	var facts [][]string
	fact := func(name, value string) {
		if value != "" {
			facts = append(facts, []string{page.Dim(name), value})
		}
	}
	fact("Reason", j.Reason)
	fact("Asks for", j.request())
	fact("Partition", j.Partition)
	fact("Account, QOS", strings.Trim(j.Account+", "+j.QOS, ", "))
	fact("Dependency", j.Dependency)
	fact("Reservation", j.Reservation)
	if j.Pending() {
		fact("Priority", strconv.FormatInt(j.Priority, 10))
	}
	if j.Submitted != nil {
		fact("Submitted", output.Age(now, *j.Submitted)+" ago")
	}
	page.Table(nil, facts)
	j.drawNodes(page, now)
	page.Notes(j.Notes)
}

// request returns what a job asks for.
func (j *Job) request() string {
	parts := []string{output.Plural(j.NodeCount, "node"), output.Plural(j.CPUs, "CPU")}
	if j.Memory != "" && j.Memory != "0" {
		parts = append(parts, j.Memory+" of memory")
	}
	if j.TRES != "" {
		parts = append(parts, j.TRES+" per node")
	}
	if j.Limit != "" {
		parts = append(parts, "a time limit of "+j.Limit)
	}
	for _, part := range [][2]string{{"features ", j.Features}, {"nodes ", j.Required}, {"not nodes ", j.Excluded}} {
		if part[1] != "" {
			parts = append(parts, part[0]+part[1])
		}
	}
	return strings.Join(parts, ", ")
}

func (j *Job) drawNodes(page *output.Page, now time.Time) {
	if len(j.PartitionNodes) == 0 {
		return
	}
	page.Line("")
	page.Line("Nodes of the partition %s: %d in use, %d idle, %d closed to jobs", j.Partition, j.PartitionNodes["in use"],
		j.PartitionNodes["idle"], j.PartitionNodes["closed"])
	var rows [][]string
	for i := range j.Closed[:min(shownClosed, len(j.Closed))] {
		node := &j.Closed[i]
		rows = append(rows, []string{"  " + node.Name, node.State, node.Because(now)})
	}
	page.Table(nil, rows)
	if more := len(j.Closed) - shownClosed; more > 0 {
		page.Line("  and %d more: kubectl slurm nodes --closed", more)
	}
}

// moment returns a time as the operator writes it in messages.
func moment(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 MST") }
