// Package jobs joins Slurm's jobs with the pods and Kubernetes nodes that they run on.
package jobs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
)

// A Result is the answer of the command.
type Result struct {
	Jobs  []Job    `json:"jobs"`
	Notes []string `json:"notes,omitempty"`
}

// A Job is a job with the pods and Kubernetes nodes of its Slurm nodes.
type Job struct {
	slurmcli.Job
	Pods            []string `json:"pods,omitempty"`
	KubernetesNodes []string `json:"kubernetesNodes,omitempty"`
}

// maxNodes is Slurm's own limit.
const maxNodes = 65536

// Join returns the jobs, running ones first, each group by number.
func Join(jobs []slurmcli.Job, pods []corev1.Pod) []Job {
	byNode := make(map[string]*corev1.Pod, len(pods))
	for i := range pods {
		byNode[kube.SlurmNode(&pods[i])] = &pods[i]
	}
	result := make([]Job, len(jobs))
	for i := range jobs {
		job := Job{Job: jobs[i]}
		names, err := hostlist.Expand(job.Nodes, maxNodes)
		if err != nil || job.Pending() {
			names = nil // squeue shows why it waits; the nodes are none that it has
		}
		for _, name := range names {
			if pod := byNode[name]; pod != nil {
				job.Pods = append(job.Pods, pod.Name)
				if pod.Spec.NodeName != "" {
					job.KubernetesNodes = append(job.KubernetesNodes, pod.Spec.NodeName)
				}
			}
		}
		slices.SortFunc(job.KubernetesNodes, nodes.CompareNames)
		job.KubernetesNodes = slices.Compact(job.KubernetesNodes)
		result[i] = job
	}
	slices.SortStableFunc(result, func(a, b Job) int {
		return cmp.Or(compareBool(a.Pending(), b.Pending()), cmp.Compare(a.Number, b.Number))
	})
	return result
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// Draw writes the result as a table.
func (r *Result) Draw(page *output.Page, now time.Time) {
	rows := make([][]string, len(r.Jobs))
	for i := range r.Jobs {
		rows[i] = r.Jobs[i].row(page, now)
	}
	heading := []string{"JOB", "NAME", "USER", "PARTITION", "STATE", "TIME", "LEFT", "COUNT", "NODES"}
	if page.Wide {
		heading = append(heading, "CPUS", "PER NODE", "QOS", "KUBERNETES NODES")
	}
	page.Table(append(heading, "REASON"), rows)
	if len(r.Jobs) == 0 {
		page.Line("no jobs")
	}
	page.Notes(r.Notes)
}

func (j *Job) row(page *output.Page, now time.Time) []string {
	mark := page.Good
	switch j.State {
	case "RUNNING":
	case "FAILED", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "TIMEOUT":
		mark = page.Bad
	default:
		mark = page.Warn
	}
	row := []string{
		j.ID, j.Name, j.User, j.Partition, mark(j.State), j.time(now), j.left(now), strconv.Itoa(j.NodeCount), j.Nodes,
	}
	if page.Wide {
		row = append(row, strconv.Itoa(j.CPUs), j.TRES, j.QOS, hostlist.Text(j.KubernetesNodes))
	}
	reason := ""
	if j.State != "RUNNING" {
		reason = j.Reason
	}
	return append(row, reason)
}

// time returns how long the job has run, or waited.
func (j *Job) time(now time.Time) string {
	switch {
	case j.Pending() && j.Submitted != nil:
		return "waits " + output.Age(now, *j.Submitted)
	case !j.Pending() && j.Start != nil:
		return output.Age(now, *j.Start)
	default:
		return ""
	}
}

// left returns when the time limit expires.
func (j *Job) left(now time.Time) string {
	switch {
	case j.Pending():
		return ""
	case j.Unlimited():
		return "no limit"
	case j.End == nil || j.End.Before(now):
		return ""
	default:
		return strings.TrimSpace(duration.HumanDuration(j.End.Sub(now)))
	}
}
