package desired

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// PodMetadata returns the merge patch for the protection label and the deadline annotation of a pod; nil if both are
// right. The deadline is when the jobs on its node end at the latest; without jobs, or with one that has no time limit,
// there is none.
func PodMetadata(pod *corev1.Pod, protect bool, load slurm.Load) []byte {
	labels, annotations := map[string]any{}, map[string]any{}
	if _, protected := pod.Labels[slinkyv1beta1.LabelPodProtect]; protected != protect {
		labels[slinkyv1beta1.LabelPodProtect] = nil
		if protect {
			labels[slinkyv1beta1.LabelPodProtect] = "true"
		}
	}
	if deadline := deadline(load); pod.Annotations[slinkyv1beta1.AnnotationPodDeadline] != deadline {
		annotations[slinkyv1beta1.AnnotationPodDeadline] = nil
		if deadline != "" {
			annotations[slinkyv1beta1.AnnotationPodDeadline] = deadline
		}
	}
	if len(labels)+len(annotations) == 0 {
		return nil
	}
	return encode(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "labels": labels, "annotations": annotations},
	})
}

// PodMark returns the merge patch that sets the operator's cordon mark on a pod, or removes it. A user's value of the
// cordon annotation stays. The patch has the resourceVersion of the pod, so that it never replaces or removes a cordon
// that a user has set since.
func PodMark(pod *corev1.Pod, mark bool) []byte {
	annotations := map[string]any{slinkyv1beta1.AnnotationPodCordonSource: nil}
	switch {
	case mark:
		annotations[slinkyv1beta1.AnnotationPodCordon] = "true"
		annotations[slinkyv1beta1.AnnotationPodCordonSource] = slinkyv1beta1.PodCordonScaleIn
	case pod.Annotations[slinkyv1beta1.AnnotationPodCordon] == "true":
		annotations[slinkyv1beta1.AnnotationPodCordon] = nil
	}
	return encode(map[string]any{
		"metadata": map[string]any{
			"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "annotations": annotations,
		},
	})
}

func deadline(load slurm.Load) string {
	if load.Jobs() == 0 || load.Unlimited || load.Until.IsZero() {
		return ""
	}
	return load.Until.UTC().Format(time.RFC3339)
}

// PodConditions returns the strategic merge patch that makes the conditions of a pod show the state of its Slurm node;
// nil if they do. The record is nil if Slurm does not have the node; identified says that it is not that of an earlier
// pod. The patch names only the operator's own conditions, so it does not race with the kubelet.
func PodConditions(pod *corev1.Pod, record *slurm.Node, identified bool, now time.Time) []byte {
	states := stateConditions(record)
	missing := maps.Clone(states)
	var changes []any
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		if !strings.HasPrefix(string(condition.Type), slinkyv1beta1.PodConditionPrefix) {
			continue
		}
		message, wanted := states[condition.Type]
		switch {
		case !wanted:
			changes = append(changes, map[string]any{"type": condition.Type, "$patch": "delete"})
		case condition.Status == corev1.ConditionTrue && condition.Message == message:
			delete(missing, condition.Type)
		}
	}
	for condition, message := range missing {
		// An empty message is written too. The API type would omit it, and the message of an earlier drain would stay.
		changes = append(changes, map[string]any{
			"type": condition, "status": corev1.ConditionTrue, "message": message,
			"lastTransitionTime": metav1.NewTime(now),
		})
	}
	if registered, changed := registration(pod, identified && isRegistered(record)); changed {
		changes = append(changes, map[string]any{
			"type": slinkyv1beta1.PodConditionRegistered, "status": registered,
			"lastTransitionTime": metav1.NewTime(now),
		})
	}
	if len(changes) == 0 {
		return nil
	}
	return encode(map[string]any{
		"metadata": map[string]any{"uid": pod.UID}, "status": map[string]any{"conditions": changes},
	})
}

// stateConditions returns the condition types for the state and flags of a Slurm node, each with the reason as its
// message while the node is closed to jobs.
func stateConditions(record *slurm.Node) map[corev1.PodConditionType]string {
	conditions := map[corev1.PodConditionType]string{}
	if record == nil {
		return conditions
	}
	reason := ""
	if record.Closed() {
		reason = record.Reason
	}
	for _, state := range record.StateNames() {
		conditions[slinkyv1beta1.PodConditionType(camelCase(state))] = reason
	}
	return conditions
}

// camelCase converts the name of a Slurm state: NOT_RESPONDING becomes NotResponding.
func camelCase(state string) string {
	var name strings.Builder
	for word := range strings.SplitSeq(state, "_") {
		if word != "" {
			name.WriteString(strings.ToUpper(word[:1]) + strings.ToLower(word[1:]))
		}
	}
	return name.String()
}

// isRegistered reports whether a slurmd has registered for a record. Those of elastic NodeSets have one before.
func isRegistered(record *slurm.Node) bool {
	return record != nil && !record.Flags.HasAny(slurm.FlagPoweringUp|slurm.FlagPoweringDown|slurm.FlagPoweredDown)
}

// registration returns the status of the condition that says whether Slurm has the pod's node, and whether it must be
// written: not before Slurm had the node for the first time.
func registration(pod *corev1.Pod, registered bool) (value corev1.ConditionStatus, changed bool) {
	value = corev1.ConditionFalse
	if registered {
		value = corev1.ConditionTrue
	}
	for i := range pod.Status.Conditions {
		if condition := &pod.Status.Conditions[i]; condition.Type == slinkyv1beta1.PodConditionRegistered {
			return value, condition.Status != value
		}
	}
	return value, registered
}

func encode(patch any) []byte {
	data, err := json.Marshal(patch)
	if err != nil {
		panic(err) // unreachable: maps, strings and API types always encode
	}
	return data
}
