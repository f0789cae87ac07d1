// Package podfailure describes why pods do not run, as one message for many pods.
package podfailure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Describe describes why pods do not run: for each type of failure an example pod, the number of other pods with the
// same failure, and Kubernetes' message. It is empty if no pod fails; a starting pod does not count as failing.
func Describe(pods []corev1.Pod) string {
	type failure struct {
		pod, trouble, message string
		others                int
	}
	var failures []*failure
	for i := range pods {
		trouble, message := podTrouble(&pods[i])
		if trouble == "" {
			continue
		}
		// Messages contain the pod's name, so they do not show whether two pods fail in the same way.
		same := slices.IndexFunc(failures, func(known *failure) bool { return known.trouble == trouble })
		if same < 0 {
			failures = append(failures, &failure{pods[i].Name, trouble, message, 0})
			continue
		}
		failures[same].others++
		if pods[i].Name < failures[same].pod { // the result must not depend on the order of the pods
			failures[same].pod, failures[same].message = pods[i].Name, message
		}
	}
	slices.SortFunc(failures, func(a, b *failure) int { return cmp.Compare(a.pod, b.pod) })
	texts := make([]string, len(failures))
	for i, failure := range failures {
		subject := "pod " + failure.pod
		if failure.others > 0 {
			subject += fmt.Sprintf(" and %d more", failure.others)
		}
		texts[i] = subject + ": " + failure.trouble
		if failure.message != "" {
			texts[i] += " (" + failure.message + ")"
		}
	}
	return strings.Join(texts, "; ")
}

// podTrouble returns why one pod fails, with Kubernetes' message. Both are empty if it does not.
func podTrouble(pod *corev1.Pod) (trouble, message string) {
	if pod.DeletionTimestamp != nil {
		return "", ""
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			condition.Reason == corev1.PodReasonUnschedulable {
			return condition.Reason, condition.Message
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses,
		pod.Status.ContainerStatuses} {
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

// transientReasons are the reasons of a waiting container that has no problem. All others except crashLoop are errors
// of the kubelet.
var transientReasons = []string{"", "ContainerCreating", "PodInitializing"}

// crashLoop is the kubelet's reason for the backoff before it restarts a crashed container.
const crashLoop = "CrashLoopBackOff"

// containerTrouble returns why a container fails. A container that crashes repeatedly alternates between terminated,
// waiting and running. All three are reported as one failure, with the exit code and message of the last termination.
func containerTrouble(status *corev1.ContainerStatus) (trouble, message string) {
	waiting, running := status.State.Waiting, status.State.Running
	ended := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	switch {
	case waiting != nil && slices.Contains(transientReasons, waiting.Reason):
		return "", ""
	case waiting != nil && (waiting.Reason != crashLoop || ended == nil):
		return waiting.Reason, waiting.Message
	case ended == nil || ended.ExitCode == 0 && waiting == nil:
		return "", ""
	// A first crash is ignored as soon as the container runs again, any other when it is ready.
	case waiting == nil && (status.RestartCount == 0 || running != nil && (status.Ready || status.RestartCount == 1)):
		return "", ""
	}
	message = fmt.Sprintf("exit code %d, %s", ended.ExitCode, ended.Reason)
	if ended.Message != "" {
		message += ": " + strings.TrimSpace(ended.Message)
	}
	return crashLoop, message
}
