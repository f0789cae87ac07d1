package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
	"github.com/slurm-operator/slurm-operator/internal/podshape"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Waits are the changes that the operator does not make at once, because they would cost jobs, and those that it makes
// in spite of it.
type Waits struct {
	slurmconf.Costs
	// Pod is true if slurmctld's pod is replaced, and its state would be lost.
	Pod bool `json:"slurmctldPod,omitempty"`
	// Override is the command with which the keys that wait change at once, and jobs are lost.
	Override string `json:"override,omitempty"`
	// Jobs are those that are waited for; nil if Slurm was not asked.
	Jobs *Jobs `json:"jobs,omitempty"`
}

// Jobs are the jobs that changes wait for.
type Jobs struct {
	Running int `json:"running"`
	// Pending is how many lines squeue has for jobs that wait: one for all tasks of an array.
	Pending int `json:"pending"`
	// Until is when the last running job ends at the latest; nil if one has no limit, or none runs.
	Until *time.Time `json:"until,omitempty"`
	// Partitions counts the jobs of the partitions that wait for them.
	Partitions map[string]int `json:"partitions,omitempty"`
}

// Waiting returns what waits now; nil if nothing does.
func Waiting(in *Input) *Waits { return in.waits(in.costs(), false) }

// WaitsOf returns what a change makes wait; nil if nothing does.
func WaitsOf(before, after *Input) *Waits {
	replaced := naming.StateClaim(before.Controller) != naming.StateClaim(after.Controller) ||
		len(podshape.Changed(podshape.OfController(&before.Controller.Spec),
			podshape.OfController(&after.Controller.Spec))) > 0
	return after.waits(after.costs().Without(before.costs()),
		replaced && !clusterconf.KeepsState(before.Controller, after.Controller))
}

func (in *Input) waits(costs slurmconf.Costs, pod bool) *Waits {
	if in.InForce == nil || in.Controller.Spec.External || costs.IsZero() && !pod {
		return nil
	}
	waits := &Waits{Costs: costs, Pod: pod}
	keys := clusterconf.DespiteJobs(in.Controller)
	named := len(keys)
	for _, change := range costs.Keys {
		if !change.Despite {
			keys = append(keys, change.Key)
		}
	}
	for _, nodes := range costs.Nodes {
		if !nodes.Despite {
			keys = append(keys, slurmconf.NodeLines)
		}
	}
	if len(keys) > named {
		waits.Override = fmt.Sprintf("kubectl annotate --overwrite --namespace=%s controllers.slinky.slurm.net/%s %s=%s",
			in.Controller.Namespace, in.Controller.Name, slinkyv1beta1.AnnotationChangeDespiteJobs, strings.Join(keys, ","))
	}
	return waits
}

// costs returns what the objects change at the cost of jobs: nothing as long as there are mistakes in the Controller,
// because then nothing is applied. A NodeSet with a mistake keeps what it has in force.
func (in *Input) costs() slurmconf.Costs {
	document, problems := in.Build()
	ofController := func(problem Problem) bool { return !strings.HasPrefix(problem.Object, ofNodeSet) }
	if slices.ContainsFunc(problems, ofController) {
		return slurmconf.Costs{}
	}
	costs := slurmconf.CostsOf(document, in.document(), clusterconf.DespiteJobs(in.Controller))
	if len(problems) > 0 {
		costs.GresTypes, costs.Partitions = nil, nil
	}
	return costs
}

// Count adds the jobs that are waited for.
func (w *Waits) Count(jobs []slurmcli.Job) {
	count := &Jobs{Partitions: map[string]int{}}
	limited := true
	for i := range jobs {
		job := &jobs[i]
		for name := range strings.SplitSeq(job.Partition, ",") {
			if slices.Contains(w.Partitions, name) {
				count.Partitions[name]++
			}
		}
		if job.Pending() {
			count.Pending++
			continue
		}
		count.Running++
		switch {
		case job.Unlimited() || job.End == nil:
			limited = false
		case count.Until == nil || job.End.After(*count.Until):
			count.Until = job.End
		}
	}
	if !limited {
		count.Until = nil
	}
	w.Jobs = count
}

// running describes the jobs that run.
func (j *Jobs) running() string {
	switch {
	case j == nil:
		return "how many jobs run is not known"
	case j.Running == 0:
		return "none runs now"
	case j.Until == nil:
		return output.Plural(j.Running, "job") + " now, some without a time limit"
	default:
		return fmt.Sprintf("%s now, the last until %s", output.Plural(j.Running, "job"),
			j.Until.UTC().Format("2006-01-02 15:04 MST"))
	}
}

// all describes all jobs.
func (j *Jobs) all() string {
	if j == nil || j.Pending == 0 {
		return j.running()
	}
	return j.running() + ", and others are pending"
}

// of describes the jobs of a partition.
func (j *Jobs) of(partition string) string {
	switch {
	case j == nil:
		return "how many it has is not known"
	case j.Partitions[partition] == 0:
		return "it has none now"
	default:
		return fmt.Sprintf("it has %d; cancel them to remove it now", j.Partitions[partition])
	}
}

// Draw writes what waits, one line each.
func (w *Waits) Draw(page *output.Page) {
	waits, warning := page.Warn("waits:"), page.Bad("warning:")
	var keys []string
	for _, change := range w.Keys {
		switch {
		case change.Despite:
			page.Line("%s %s changes from %q to %q while jobs run, and jobs are lost: %s; to let it wait, remove it from the "+
				"annotation %s", warning, change.Key, change.InForce, change.Wanted, w.Jobs.all(),
				slinkyv1beta1.AnnotationChangeDespiteJobs)
		case change.CostsPending():
			page.Line("%s %s stays %s until there is no job, pending or running, because jobs that do not fit into %s would be "+
				"lost: %s", waits, change.Key, change.InForce, change.Wanted, w.Jobs.all())
		default:
			keys = append(keys, change.Key)
		}
	}
	if len(keys) > 0 {
		page.Line("%s %s stays as it is in force until no job runs, because a change would cost running jobs: %s; for new "+
			"jobs to wait until then, create a reservation of all nodes with Flags=MAINT,IGNORE_JOBS, and delete it afterwards", waits, strings.Join(keys, ","),
			w.Jobs.running())
	}
	for _, nodes := range w.Nodes {
		if nodes.Despite {
			page.Line("%s the lines of Slurm nodes %s change while jobs run, and jobs of these nodes are lost: %s; to let them "+
				"wait, remove %s from the annotation %s", warning, nodes.Names, w.Jobs.running(), slurmconf.NodeLines,
				slinkyv1beta1.AnnotationChangeDespiteJobs)
		} else {
			page.Line("%s the lines of Slurm nodes %s stay as they are in force until these nodes are drained and have no job, "+
				"or no job runs, because a change would cost their jobs: %s; to change them earlier: scontrol update "+
				"'nodename=%s' state=drain reason=reconfiguration, and resume them afterwards", waits, nodes.Names, w.Jobs.running(), nodes.Names)
		}
	}
	if w.Pod {
		page.Line("%s slurmctld's pod is replaced when no job runs, because the new one does not have its state "+
			"(spec.persistence), and jobs end with that: %s; to replace it now, and lose jobs, delete the pod", waits,
			w.Jobs.running())
	}
	for _, name := range w.GresTypes {
		page.Line("%s the GRES type %s stays in slurm.conf until no Slurm node has it, because slurmctld would forget which "+
			"job uses it", waits, name)
	}
	for _, name := range w.Partitions {
		page.Line("%s the partition %s stays, and takes no new jobs, until it has none, because slurmctld would end its "+
			"jobs: %s", waits, name, w.Jobs.of(name))
	}
	if w.Override != "" {
		page.Line("to change the keys now, and lose jobs: %s", w.Override)
	}
}
