// Package forecast says what the operator will do next with the pods of NodeSets, as they are or as they would be after
// a change.
//
// It is the operator's own planner (package plan), fed with what a user may read. Two things that only the operator
// knows are assumed: that the snapshot of Slurm is as new as it can be, and that a drained Slurm node is drained since
// its reason was set. So the operator may wait some seconds longer than a forecast says.
package forecast

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/observation"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/hostlist"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
	"github.com/slurm-operator/slurm-operator/internal/podshape"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// An Input is what is known about a cluster.
type Input struct {
	Now        time.Time
	Controller *slinkyv1beta1.Controller
	// Accounting is nil if there is none.
	Accounting *slinkyv1beta1.Accounting
	// Pods are the slurmd pods, and KubernetesNodes all Kubernetes nodes.
	Pods            []corev1.Pod
	KubernetesNodes []corev1.Node
	// SlurmNodes and Jobs are as Slurm shows them; Asked says that it was asked.
	SlurmNodes []slurm.Node
	Jobs       []slurmcli.Job
	Asked      bool
	// Started is when the active slurmctld started; zero if unknown.
	Started time.Time
}

// A NodeSet is the forecast for a NodeSet.
type NodeSet struct {
	Name string `json:"name"`
	// Changed says that the forecast is about a changed NodeSet.
	Changed bool `json:"changed,omitempty"`
	// Steps are what happens now.
	Steps []Step `json:"steps"`
	// Waits are the pods that should be deleted or replaced, and what holds them.
	Waits []Wait `json:"waits,omitempty"`

	Desired   int `json:"desired"`
	Available int `json:"available"`
	Updated   int `json:"updated"`
	// Outdated counts the pods of an older revision, and AtOnce how many of them may be replaced at the same time.
	Outdated int `json:"outdated,omitempty"`
	AtOnce   int `json:"atOnce,omitempty"`
	// Stopped says why an update does not go on, and Withheld why no pod is created.
	Stopped  string `json:"stopped,omitempty"`
	Withheld string `json:"withheld,omitempty"`
	// JobsUntil is when the last job that is waited for ends at the latest; nil if none is, or one has no limit.
	JobsUntil *time.Time `json:"jobsUntil,omitempty"`
}

// A Step is one kind of action on some nodes, for one cause.
type Step struct {
	Action string `json:"action"`
	// Nodes is a hostlist expression of pods or Slurm nodes, and Count their number.
	Nodes string `json:"nodes"`
	Count int    `json:"count"`
	Why   string `json:"why"`
}

// A Wait is what holds some pods.
type Wait struct {
	Pods  string     `json:"pods"`
	Cause string     `json:"cause"`
	Why   string     `json:"why"`
	Until *time.Time `json:"until,omitempty"`
}

// changedRevision is that of new pods if a change replaces them.
const changedRevision = "changed"

// Of makes the forecast for a NodeSet. before is the NodeSet as it is, and after as it would be: the same for what
// happens without a change, and before is nil for a new one.
func Of(in *Input, before, after *slinkyv1beta1.NodeSet) (NodeSet, error) {
	if after.Spec.Elastic != nil {
		return NodeSet{
			Name: after.Name, Changed: before != after,
			Withheld: "it is elastic: Slurm decides which pods it has (kubectl slurm -- sinfo)",
		}, nil
	}
	snapshot, err := in.snapshot(before, after)
	if err != nil {
		return NodeSet{}, err
	}
	next := plan.Next(snapshot)
	result := NodeSet{
		Name: after.Name, Changed: before != after, Steps: steps(after, &next),
		Desired: next.Desired, Available: next.Available, Updated: next.Updated,
		Stopped: next.Stopped, Withheld: cmp.Or(next.Withheld, snapshot.Set.Withheld),
	}
	if next.Outdated > 0 && snapshot.Set.Replaces() {
		result.Outdated, result.AtOnce = next.Outdated, snapshot.Set.Update.MaxUnavailable
	}
	result.addWaits(&next)
	return result, nil
}

// snapshot converts what is known for package plan.
func (in *Input) snapshot(before, after *slinkyv1beta1.NodeSet) (*plan.Snapshot, error) {
	revision, err := revisionOf(before, after)
	if err != nil {
		return nil, err
	}
	snapshot := &plan.Snapshot{
		Now: in.Now, KubernetesNodes: map[string]plan.KubernetesNode{}, JustRead: true, Answers: in.Asked,
		DrainedSince: map[string]time.Time{},
	}
	for i := range in.Pods {
		if pod := &in.Pods[i]; before != nil && metav1.IsControlledBy(pod, before) {
			snapshot.Pods = append(snapshot.Pods, observation.Pod(pod))
		}
	}
	slices.SortFunc(snapshot.Pods, func(a, b plan.Pod) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Name, b.Name))
	})
	template, withheld := in.template(after)
	desired := observation.Replicas(after)
	daemonSet := observation.IsDaemonSet(after)
	if daemonSet {
		desired = 0
	}
	for i := range in.KubernetesNodes {
		node := &in.KubernetesNodes[i]
		hosts := slices.ContainsFunc(snapshot.Pods, func(pod plan.Pod) bool { return pod.KubernetesNode == node.Name })
		if !daemonSet && !hosts {
			continue
		}
		planned := observation.KubernetesNode(after, template, node)
		snapshot.KubernetesNodes[node.Name] = planned
		if daemonSet && planned.Wanted {
			desired++
		}
	}
	snapshot.Set = observation.Set(after, revision, desired, in.Now)
	snapshot.Set.Withheld = withheld
	if in.Asked {
		snapshot.Slurm = in.slurm()
		in.addDrains(snapshot)
	}
	return snapshot, nil
}

// revisionOf returns the revision of new pods: the current one, unless a change replaces pods.
func revisionOf(before, after *slinkyv1beta1.NodeSet) (string, error) {
	if before == nil {
		return changedRevision, nil
	}
	was, err := json.Marshal(podshape.OfNodeSet(&before.Spec))
	if err != nil {
		return "", fmt.Errorf("comparing the pods of NodeSet %s: %w", before.Name, err)
	}
	becomes, err := json.Marshal(podshape.OfNodeSet(&after.Spec))
	if err != nil {
		return "", fmt.Errorf("comparing the pods of NodeSet %s: %w", before.Name, err)
	}
	if string(was) != string(becomes) {
		return changedRevision, nil
	}
	return before.Status.NodeSetHash, nil
}

// template returns the template of new pods, as far as it decides where they run, or why there is none.
func (in *Input) template(set *slinkyv1beta1.NodeSet) (template *corev1.PodTemplateSpec, withheld string) {
	confined, _ := clusterconf.PreparesPods(in.Controller)
	built, err := worker.Template(worker.Set{
		NodeSet: set, Controller: in.Controller, SlurmKey: naming.ControllerKeys(in.Controller, in.Accounting).Slurm,
		SlurmUser: clusterconf.RequiredUID(in.Controller), Confined: confined,
	})
	if err != nil {
		return nil, err.Error()
	}
	return &built, ""
}

// slurm returns what Slurm shows, as the operator's mirror keeps it.
func (in *Input) slurm() *slurm.Snapshot {
	snapshot := &slurm.Snapshot{
		NodesAsOf: in.Now, JobsAsOf: in.Now, ControllerSince: in.Started,
		Queue: slurm.Queue{Loads: map[string]slurm.Load{}},
	}
	for i := range in.SlurmNodes {
		snapshot.Nodes = append(snapshot.Nodes, &in.SlurmNodes[i])
	}
	slices.SortFunc(snapshot.Nodes, func(a, b *slurm.Node) int { return cmp.Compare(a.Name, b.Name) })
	for i := range in.Jobs {
		job := &in.Jobs[i]
		if job.Pending() {
			snapshot.Pending++
			continue
		}
		snapshot.Running++
		names, _ := hostlist.Expand(job.Nodes, maxNodes) // Slurm printed it
		for _, name := range names {
			snapshot.Loads[name] = withJob(snapshot.Loads[name], job)
		}
	}
	return snapshot
}

// maxNodes is Slurm's own limit of nodes.
const maxNodes = 65536

// withJob adds a job to the load of a node.
func withJob(load slurm.Load, job *slurmcli.Job) slurm.Load {
	switch job.State {
	case "RUNNING":
		load.Running++
	case "COMPLETING":
		load.Completing++
	default:
		load.Other++
	}
	switch {
	case load.Unlimited:
	case job.Unlimited() || job.End == nil:
		load.Unlimited, load.Until, load.Job = true, time.Time{}, job.Number
	case job.End.After(load.Until):
		load.Until, load.Job = *job.End, job.Number
	}
	return load
}

// addDrains adds since when Slurm nodes are drained. The operator keeps a history of it.
func (in *Input) addDrains(snapshot *plan.Snapshot) {
	for i := range snapshot.Pods {
		name := snapshot.Pods[i].SlurmNode
		record, known := snapshot.Slurm.Node(name)
		switch {
		case known && record.Drained():
			snapshot.DrainedSince[name] = record.ReasonAt
		case !known:
			snapshot.DrainedSince[name] = snapshot.Pods[i].Created
		}
	}
}

// steps groups the actions of a plan.
func steps(set *slinkyv1beta1.NodeSet, next *plan.Plan) []Step {
	all := []Step{}
	names := map[int][]string{}
	for _, action := range next.Actions {
		name := action.SlurmNode
		switch {
		case action.Kind == plan.Create && action.Pod.Ordinal >= 0:
			name = naming.WorkerPod(set, action.Pod.Ordinal)
		case action.Kind == plan.Create:
			name = naming.NodeWorkerPod(set, action.Pod.KubernetesNode)
		case action.Pod != nil && action.Kind != plan.Drain && action.Kind != plan.Undrain:
			name = action.Pod.Name
		}
		step := Step{Action: string(action.Kind), Why: action.Why}
		index := slices.IndexFunc(all, func(known Step) bool { return known.Action == step.Action && known.Why == step.Why })
		if index < 0 {
			index = len(all)
			all = append(all, step)
		}
		names[index] = append(names[index], name)
	}
	for index := range all {
		all[index].Nodes, all[index].Count = hostlist.Text(names[index]), len(names[index])
	}
	return all
}

// addWaits groups what holds pods. Pods with jobs have one entry each.
func (s *NodeSet) addWaits(next *plan.Plan) {
	names, unlimited := map[int][]string{}, false
	for _, wait := range next.Waits {
		found := Wait{Cause: string(wait.Cause), Why: wait.Hold.Why}
		if !wait.Hold.Until.IsZero() {
			found.Until = new(wait.Hold.Until)
		}
		if wait.Hold.Kind == plan.Jobs {
			unlimited = unlimited || found.Until == nil
			if found.Until != nil && (s.JobsUntil == nil || found.Until.After(*s.JobsUntil)) {
				s.JobsUntil = found.Until
			}
		}
		index := slices.IndexFunc(s.Waits, func(known Wait) bool {
			return known.Cause == found.Cause && known.Why == found.Why
		})
		if index < 0 {
			index = len(s.Waits)
			s.Waits = append(s.Waits, found)
		}
		names[index] = append(names[index], wait.Pod.Name)
	}
	for index := range s.Waits {
		s.Waits[index].Pods = hostlist.Text(names[index])
	}
	if unlimited {
		s.JobsUntil = nil
	}
}
