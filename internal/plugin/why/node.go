// Package why explains the state of one node or job: what closes a Slurm node to jobs and who may lift it, why its pod
// is to be deleted and what keeps it, and why a job waits and what would start it.
package why

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// An Input is what is known about a node. Everything but the name is optional.
type Input struct {
	Name string
	// Record is Slurm's, and Asked says that Slurm was asked for it.
	Record *slurm.Node
	Asked  bool
	// Joined is the row of package nodes, which has the state of pod conditions if Slurm was not asked.
	Joined         nodes.Node
	Jobs           []slurmcli.Job
	Pod            *corev1.Pod
	KubernetesNode *corev1.Node
	NodeSet        *slinkyv1beta1.NodeSet
	Now            time.Time
}

// A Node explains the state of a Slurm node and its pod.
type Node struct {
	nodes.Node
	// Verdict is the answer in one sentence.
	Verdict string `json:"verdict"`
	// Closing is what keeps the node from taking jobs.
	Closing []Finding `json:"closing,omitempty"`
	// Leaving is why its pod is to be deleted or replaced, and Holding what keeps it until then.
	Leaving []Finding `json:"leaving,omitempty"`
	Holding []Finding `json:"holding,omitempty"`
	// Reports are what the operator says about its NodeSet.
	Reports []string `json:"reports,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// A Finding is a cause, with what to do about it.
type Finding struct {
	What   string `json:"what"`
	Remedy string `json:"remedy,omitempty"`
}

// ExplainNode explains a node.
func ExplainNode(input *Input) Node {
	result := Node{Node: input.Joined}
	result.Closing = closing(input)
	result.Leaving = leaving(input)
	if len(result.Leaving) > 0 {
		result.Holding = holding(input)
	}
	result.Reports = reports(input.NodeSet)
	result.Verdict = verdict(input, &result)
	return result
}

func verdict(input *Input, result *Node) string {
	var text string
	switch {
	case result.State == "" && input.Asked:
		text = input.Name + " is not registered with Slurm"
	case result.State == "":
		text = "the state of " + input.Name + " in Slurm is not known"
	case result.Closed:
		text = input.Name + " takes no new jobs"
	case len(result.Closing) > 0:
		text = input.Name + " is open to jobs, with restrictions"
	default:
		text = input.Name + " takes jobs"
	}
	switch {
	case len(result.Leaving) == 0:
	case len(result.Holding) > 0:
		text += "; its pod is to be deleted, and is kept for now"
	default:
		text += "; its pod is to be deleted, and nothing is known that keeps it"
	}
	return text
}

// closing returns every cause that keeps jobs from a node: what Slurm shows, and what the operator derives from
// Kubernetes, which may have yet to reach Slurm.
func closing(input *Input) []Finding {
	var found []Finding
	if input.Joined.Closed {
		found = append(found, drained(input))
	}
	if input.Record != nil {
		found = append(found, flagged(input.Record)...)
	}
	var stopped []Finding
	if pod := input.Pod; pod != nil {
		found = append(found, cordoned(input)...)
		stopped = unready(pod)
		found = append(found, stopped...)
	}
	if input.Asked && input.Record == nil && len(stopped) == 0 {
		found = append(found, unregistered(input))
	}
	return found
}

// flagged explains states of Slurm other than drains.
func flagged(record *slurm.Node) []Finding {
	var found []Finding
	for _, known := range []struct {
		flags        slurm.Flags
		what, remedy string
	}{
		{slurm.FlagNotResponding, "slurmctld does not hear from its slurmd",
			"see the log of its pod, and the network policies between it and slurmctld"},
		{slurm.FlagInvalidReg, "its slurmd registered with fewer CPUs, less memory or fewer devices than its record has",
			"see the log of slurmctld for what differs, and replace the pod when it has no job"},
		{slurm.FlagPoweredDown | slurm.FlagPoweringDown | slurm.FlagPowerDown, "it is powered down, or is being",
			"a job that needs it, or: kubectl slurm -- scontrol update nodename=NODE state=power_up"},
		{slurm.FlagPoweringUp | slurm.FlagPowerUp, "it is being powered up", ""},
		{slurm.FlagRebootIssued | slurm.FlagRebootRequested, "a reboot was requested",
			"to cancel it: kubectl slurm -- scontrol cancel_reboot NODE"},
		{slurm.FlagMaintenance | slurm.FlagReserved, "a reservation includes it: " + record.Reservation,
			"kubectl slurm -- scontrol show reservation " + record.Reservation},
		{slurm.FlagPlanned, "the scheduler keeps it free for a job with a higher priority", ""},
		{slurm.FlagBlocked, "a job with exclusive topology blocks it", ""},
	} {
		if record.Flags.HasAny(known.flags) {
			found = append(found, Finding{known.what, strings.ReplaceAll(known.remedy, "NODE", record.Name)})
		}
	}
	return found
}

// unready explains why a pod does not run.
func unready(pod *corev1.Pod) []Finding {
	if pod.DeletionTimestamp != nil {
		return []Finding{{"its pod is terminating", ""}}
	}
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return []Finding{{"its pod is not scheduled: " + cmp.Or(condition.Message, condition.Reason),
				"kubectl describe pod " + pod.Name}}
		}
	}
	for i := range pod.Status.ContainerStatuses {
		container := &pod.Status.ContainerStatuses[i]
		if waiting := container.State.Waiting; waiting != nil && waiting.Reason != "" {
			remedy := "kubectl describe pod " + pod.Name
			if container.LastTerminationState.Terminated != nil { // otherwise there is no log
				remedy = fmt.Sprintf("kubectl logs %s --container=%s --previous", pod.Name, container.Name)
			}
			return []Finding{{fmt.Sprintf("the container %s of its pod does not run: %s",
				container.Name, strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")), remedy}}
		}
	}
	if state := nodes.PodState(pod); state != string(corev1.PodRunning) {
		return []Finding{{"its pod is " + state, "kubectl describe pod " + pod.Name}}
	}
	return nil
}

// unregistered explains a node that Slurm does not have.
func unregistered(input *Input) Finding {
	switch {
	case input.Pod == nil:
		return Finding{"Slurm has no such node, and Kubernetes no such pod", "kubectl slurm nodes lists what there is"}
	case everRegistered(input.Pod):
		return Finding{"Slurm has lost its record: slurmctld crashed, was restored from a backup, or the record was deleted",
			"the operator replaces the pod after spec.registrationTimeout of the NodeSet"}
	default:
		return Finding{"its slurmd has not registered with Slurm",
			"see the log: kubectl logs " + input.Pod.Name + " --container=slurmd"}
	}
}

func everRegistered(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == slinkyv1beta1.PodConditionRegistered {
			return true
		}
	}
	return false
}

// leaving returns why the pod of a node is to be deleted.
func leaving(input *Input) []Finding {
	pod, set := input.Pod, input.NodeSet
	if pod == nil || pod.DeletionTimestamp != nil {
		return nil
	}
	var found []Finding
	if pod.Annotations[slinkyv1beta1.AnnotationPodCordonSource] == slinkyv1beta1.PodCordonScaleIn {
		found = append(found, Finding{"its NodeSet needs fewer pods, and this one was chosen",
			fmt.Sprintf("to keep it, scale out again: kubectl scale nodeset %s --replicas=…", input.Joined.NodeSet)})
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		found = append(found, Finding{"its containers have exited", ""})
	}
	if set == nil {
		return found
	}
	if set.DeletionTimestamp != nil {
		found = append(found, Finding{"its NodeSet is being deleted", ""})
	}
	if revision := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; revision != "" &&
		set.Status.NodeSetHash != "" && revision != set.Status.NodeSetHash {
		found = append(found, Finding{"its revision " + revision + " is out of date: that of the NodeSet is " +
			set.Status.NodeSetHash, "to keep it, restore the previous spec of the NodeSet"})
	}
	return found
}

// holding returns everything that keeps a pod: the checks of the deletion rule that do not pass now. The operator reads
// Slurm once more before it deletes anything.
func holding(input *Input) []Finding {
	var found []Finding
	for i := range input.Jobs {
		found = append(found, runs(&input.Jobs[i], input.Now))
	}
	switch record := input.Record; {
	case !input.Asked:
		found = append(found, unasked(input.Pod))
	case record == nil:
		found = append(found, Finding{"Slurm has no record of it, and its slurmd may register at any moment",
			"it is deleted when spec.registrationTimeout of the NodeSet has passed"})
	default:
		if record.Busy() && len(input.Jobs) == 0 {
			found = append(found, Finding{"its record shows an allocation or a clean-up: " + nodes.StateOf(record), ""})
		}
		if !record.Closed() {
			found = append(found, Finding{"it is not drained yet, so a job may start at any moment", notDrained(input)})
		}
	}
	if set := input.NodeSet; set != nil {
		found = append(found, heldByUpdate(input.Pod, set)...)
	}
	return found
}

// unasked says what the operator's annotation says about jobs, if Slurm was not asked.
func unasked(pod *corev1.Pod) Finding {
	if deadline, err := time.Parse(time.RFC3339, pod.Annotations[slinkyv1beta1.AnnotationPodDeadline]); err == nil {
		return Finding{fmt.Sprintf("it has jobs, the last of which ends at %s at the latest", moment(deadline)), ""}
	}
	return Finding{"Slurm was not asked about its jobs; the operator keeps it until Slurm shows none", ""}
}

// runs describes a job that keeps a pod.
func runs(job *slurmcli.Job, now time.Time) Finding {
	remedy := "cancel it to go on now: kubectl slurm -- scancel " + job.ID
	switch {
	case job.State == "COMPLETING":
		return Finding{fmt.Sprintf("job %s of %s is being cleaned up", job.ID, job.User), ""}
	case job.Unlimited() || job.End == nil:
		return Finding{fmt.Sprintf("job %s of %s runs, without a time limit", job.ID, job.User), remedy}
	default:
		return Finding{fmt.Sprintf("job %s of %s runs until %s at the latest (in %s)", job.ID, job.User, moment(*job.End),
			duration.HumanDuration(max(job.End.Sub(now), 0))), remedy}
	}
}

// notDrained says what a pod that waits for its drain waits for.
func notDrained(input *Input) string {
	if set := input.NodeSet; set != nil && meta.IsStatusConditionFalse(set.Status.Conditions,
		slinkyv1beta1.ConditionSlurmReachable) {
		return "the operator cannot reach Slurm: kubectl slurm status"
	}
	return "during an update, the operator drains as many nodes at a time as maxUnavailable allows"
}

// heldByUpdate explains holds of updates.
func heldByUpdate(pod *corev1.Pod, set *slinkyv1beta1.NodeSet) []Finding {
	var found []Finding
	_, sourced := pod.Annotations[slinkyv1beta1.AnnotationPodCordonSource]
	if pod.Annotations[slinkyv1beta1.AnnotationPodCordon] == "true" && !sourced {
		found = append(found, Finding{"a user has cordoned the pod, so no update replaces it", uncordonPod(pod.Name)})
	}
	update := meta.FindStatusCondition(set.Status.Conditions, slinkyv1beta1.ConditionUpdateInProgress)
	if update != nil && update.Status != metav1.ConditionTrue && update.Reason != slinkyv1beta1.ReasonUpToDate {
		found = append(found, Finding{fmt.Sprintf("the update does not go on (%s): %s", update.Reason, update.Message), ""})
	}
	return found
}

// reports returns what the operator says about a NodeSet that is not as it should be.
func reports(set *slinkyv1beta1.NodeSet) []string {
	if set == nil {
		return nil
	}
	var found []string
	seen := map[string]bool{}
	for _, kind := range []string{
		slinkyv1beta1.ConditionReady, slinkyv1beta1.ConditionScaledIn, slinkyv1beta1.ConditionSlurmReachable,
	} {
		condition := meta.FindStatusCondition(set.Status.Conditions, kind)
		if condition == nil || condition.Status == metav1.ConditionTrue || seen[condition.Message] {
			continue
		}
		seen[condition.Message] = true
		found = append(found, fmt.Sprintf("NodeSet %s: %s (%s): %s", set.Name, kind, condition.Reason, condition.Message))
	}
	return found
}
