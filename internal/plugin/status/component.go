package status

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// A State is the verdict on an object.
type State string

// The states.
const (
	// Ready: it matches its spec.
	Ready State = "Ready"
	// Progressing: the operator is working on it.
	Progressing State = "Progressing"
	// Degraded: a user must act.
	Degraded State = "Degraded"
	// Deleting: it is being deleted.
	Deleting State = "Deleting"
	// Unknown: the operator has not reported anything about it.
	Unknown State = "Unknown"
	// NotFound: it does not exist, or the user may not read it.
	NotFound State = "NotFound"
)

// A Component is an object of a cluster.
type Component struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     State  `json:"state"`
	// Reason and Message are those of the condition Ready, and Since is when its status last changed.
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	Since   *metav1.Time `json:"since,omitempty"`
	// Pods are the ready and the desired pods, such as 2/3.
	Pods string `json:"pods,omitempty"`
	// Slurm counts the Slurm nodes of a NodeSet.
	Slurm *slinkyv1beta1.NodeCounts `json:"slurm,omitempty"`
	// Progress is how far rollouts are.
	Progress []Progress `json:"progress,omitempty"`
	// Problems are further conditions that are not as they should be.
	Problems []Problem `json:"problems,omitempty"`
}

// A Problem is a condition that is not as it should be.
type Problem struct {
	Condition string      `json:"condition"`
	Reason    string      `json:"reason"`
	Message   string      `json:"message"`
	Since     metav1.Time `json:"since"`
}

// Progress is how far a rollout is.
type Progress struct {
	What  string       `json:"what"`
	Done  int          `json:"done"`
	Total int          `json:"total"`
	Since *metav1.Time `json:"since,omitempty"`
	// Left is an estimate in seconds, from the time that the first ones took and the jobs that are waited for; zero if
	// there is none.
	Left int64 `json:"leftSeconds,omitempty"`
}

// component returns the verdict on an object.
func component(kind string, object metav1.ObjectMeta, observed int64, conditions []metav1.Condition) Component {
	result := Component{Kind: kind, Namespace: object.Namespace, Name: object.Name, State: Unknown}
	ready := meta.FindStatusCondition(conditions, slinkyv1beta1.ConditionReady)
	if ready == nil {
		result.Message = "the operator has not reported its state yet; if this lasts, see whether the operator runs and " +
			"watches the namespace"
		return result
	}
	result.Reason, result.Message, result.Since = ready.Reason, ready.Message, &ready.LastTransitionTime
	switch {
	case object.DeletionTimestamp != nil:
		result.State, result.Since = Deleting, object.DeletionTimestamp
	case observed < object.Generation:
		result.State, result.Reason = Progressing, slinkyv1beta1.ReasonReconciling
		result.Message = "the operator has not seen the latest change of the spec yet; before it: " + ready.Message
	case ready.Status == metav1.ConditionTrue:
		result.State = Ready
	case meta.IsStatusConditionTrue(conditions, slinkyv1beta1.ConditionDegraded):
		result.State = Degraded
	default:
		result.State = Progressing
	}
	return result
}

// addProblems adds the conditions that are not True, unless they only repeat what Ready says.
func (c *Component) addProblems(conditions []metav1.Condition, types ...string) {
	for _, kind := range types {
		condition := meta.FindStatusCondition(conditions, kind)
		if condition == nil || condition.Status == metav1.ConditionTrue || condition.Message == c.Message {
			continue
		}
		c.Problems = append(c.Problems, Problem{
			Condition: kind, Reason: condition.Reason, Message: condition.Message, Since: condition.LastTransitionTime,
		})
	}
}

func accounting(object *slinkyv1beta1.Accounting) Component {
	result := component("Accounting", object.ObjectMeta, object.Status.ObservedGeneration, object.Status.Conditions)
	result.addProblems(object.Status.Conditions, slinkyv1beta1.ConditionDatabaseReachable)
	return result
}

// replicated returns the verdict on an object with pods that are all alike.
func replicated(
	kind string, object metav1.ObjectMeta, observed int64, conditions []metav1.Condition, pods string,
) Component {
	result := component(kind, object, observed, conditions)
	result.Pods = pods
	return result
}

func nodeSet(object *slinkyv1beta1.NodeSet, now time.Time) Component {
	is := &object.Status
	result := component("NodeSet", object.ObjectMeta, is.ObservedGeneration, is.Conditions)
	result.Pods = fmt.Sprintf("%d/%d", is.AvailableReplicas, is.Desired)
	result.Slurm = &slinkyv1beta1.NodeCounts{
		Total: is.Replicas, Idle: is.SlurmIdle, Allocated: is.SlurmAllocated, Down: is.SlurmDown, Drain: is.SlurmDrain,
	}
	result.addProblems(is.Conditions, slinkyv1beta1.ConditionSlurmReachable, slinkyv1beta1.ConditionScaledIn,
		slinkyv1beta1.ConditionTopologyApplied)
	result.addUpdate(is, now)
	if ready := meta.FindStatusCondition(is.Conditions, slinkyv1beta1.ConditionReady); ready != nil &&
		ready.Reason == slinkyv1beta1.ReasonScalingOut {
		result.Progress = append(result.Progress, Progress{
			What: "scale-out", Done: int(is.AvailableReplicas), Total: int(is.Desired), Since: &ready.LastTransitionTime,
		})
	}
	return result
}

// addUpdate adds how far an update of a NodeSet is, or why it does not go on.
func (c *Component) addUpdate(is *slinkyv1beta1.NodeSetStatus, now time.Time) {
	update := meta.FindStatusCondition(is.Conditions, slinkyv1beta1.ConditionUpdateInProgress)
	switch {
	case update == nil || update.Reason == slinkyv1beta1.ReasonUpToDate:
		return
	case update.Status != metav1.ConditionTrue && update.Message != c.Message:
		c.Problems = append(c.Problems, Problem{
			Condition: update.Type, Reason: update.Reason, Message: update.Message, Since: update.LastTransitionTime,
		})
	}
	c.Progress = append(c.Progress, Progress{
		What: "update", Done: int(is.UpdatedReplicas), Total: int(max(is.Replicas, is.Desired)),
		Since: &update.LastTransitionTime,
		Left:  estimate(update, int(is.UpdatedReplicas), int(max(is.Replicas, is.Desired)), now),
	})
}

// until matches the end of a job in the messages of NodeSets.
var until = regexp.MustCompile(`until (\d{4}-\d\d-\d\d \d\d:\d\d) UTC`)

// estimate returns how many seconds longer a rollout takes if the rest takes as long as what is done, and at least
// until the jobs in its message end: zero if that is not known.
func estimate(update *metav1.Condition, done, total int, now time.Time) int64 {
	elapsed := now.Sub(update.LastTransitionTime.Time)
	if update.Status != metav1.ConditionTrue || done <= 0 || done >= total || elapsed <= 0 ||
		strings.Contains(update.Message, "no time limit") {
		return 0
	}
	left := elapsed * time.Duration(total-done) / time.Duration(done)
	for _, match := range until.FindAllStringSubmatch(update.Message, -1) {
		if end, err := time.Parse("2006-01-02 15:04", match[1]); err == nil {
			left = max(left, end.Sub(now))
		}
	}
	return int64(left.Seconds())
}
