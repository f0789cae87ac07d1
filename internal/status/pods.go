package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// PodTrouble says what keeps pods from running: for each kind of failure the pod that shows it, how many others fail in
// the same way, and what Kubernetes says about it. It is empty when no pod fails; a pod that is merely starting does not.
func PodTrouble(pods []corev1.Pod) string {
	type kind struct {
		pod, trouble, message string
		others                int
	}
	var kinds []*kind
	for _, pod := range slices.SortedFunc(slices.Values(pods), func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) }) {
		trouble, message := podTrouble(&pod)
		if trouble == "" {
			continue
		}
		// Messages name the pod, so that they cannot tell whether two pods fail in the same way.
		same := slices.IndexFunc(kinds, func(known *kind) bool { return known.trouble == trouble })
		if same >= 0 {
			kinds[same].others++
			continue
		}
		kinds = append(kinds, &kind{pod: pod.Name, trouble: trouble, message: message})
	}
	texts := make([]string, len(kinds))
	for i, kind := range kinds {
		who := "pod " + kind.pod
		if kind.others > 0 {
			who += fmt.Sprintf(" and %d more", kind.others)
		}
		texts[i] = who + ": " + kind.trouble
		if kind.message != "" {
			texts[i] += " (" + kind.message + ")"
		}
	}
	return strings.Join(texts, "; ")
}

// podTrouble says what is wrong with one pod, and what Kubernetes says about it. Both are empty when nothing is.
func podTrouble(pod *corev1.Pod) (trouble, message string) {
	if pod.DeletionTimestamp != nil {
		return "", ""
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			return condition.Reason, condition.Message
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if trouble, message := containerTrouble(&statuses[i]); trouble != "" {
				return "container " + statuses[i].Name + " has " + trouble, message
			}
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return cmp.Or(pod.Status.Reason, string(pod.Status.Phase)), pod.Status.Message
	}
	return "", ""
}

// passing are the reasons for which a container waits while nothing is wrong. All others are errors of the kubelet's.
var passing = []string{"", "ContainerCreating", "PodInitializing"}

// containerTrouble says what is wrong with a container. One that crashed is in trouble from the kubelet's first pause
// before a restart; how it ended tells more about it than that pause.
func containerTrouble(status *corev1.ContainerStatus) (trouble, message string) {
	waiting := status.State.Waiting
	if waiting == nil || slices.Contains(passing, waiting.Reason) {
		return "", ""
	}
	if ended := status.LastTerminationState.Terminated; ended != nil {
		message := fmt.Sprintf("exit code %d, %s", ended.ExitCode, ended.Reason)
		if ended.Message != "" {
			message += ": " + ended.Message
		}
		return waiting.Reason, message
	}
	return waiting.Reason, waiting.Message
}
