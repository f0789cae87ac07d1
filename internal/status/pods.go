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
	for i := range pods {
		trouble, message := podTrouble(&pods[i])
		if trouble == "" {
			continue
		}
		// Messages name the pod, so that they cannot tell whether two pods fail in the same way.
		same := slices.IndexFunc(kinds, func(known *kind) bool { return known.trouble == trouble })
		if same < 0 {
			kinds = append(kinds, &kind{pods[i].Name, trouble, message, 0})
			continue
		}
		kinds[same].others++
		if pods[i].Name < kinds[same].pod { // whatever the order, the words are the same
			kinds[same].pod, kinds[same].message = pods[i].Name, message
		}
	}
	slices.SortFunc(kinds, func(a, b *kind) int { return cmp.Compare(a.pod, b.pod) })
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

// passing are the reasons for which a container waits while nothing is wrong. All others but that of a crash are errors of
// the kubelet's.
var passing = []string{"", "ContainerCreating", "PodInitializing"}

// crashing is the kubelet's word for the pause before it starts a crashed container again.
const crashing = "CrashLoopBackOff"

// containerTrouble says what is wrong with a container. One that crashes again and again has ended, waits and runs by turns;
// that is one trouble, and how it ended tells more about it than the turn that it is in.
func containerTrouble(status *corev1.ContainerStatus) (trouble, message string) {
	waiting, running := status.State.Waiting, status.State.Running
	ended := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	switch {
	case waiting != nil && slices.Contains(passing, waiting.Reason):
		return "", ""
	case waiting != nil && (waiting.Reason != crashing || ended == nil):
		return waiting.Reason, waiting.Message
	case ended == nil || ended.ExitCode == 0 && waiting == nil:
		return "", ""
	// A first crash is forgiven as soon as the container runs again, any other when it is ready.
	case waiting == nil && (status.RestartCount == 0 || running != nil && (status.Ready || status.RestartCount == 1)):
		return "", ""
	}
	message = fmt.Sprintf("exit code %d, %s", ended.ExitCode, ended.Reason)
	if ended.Message != "" {
		message += ": " + strings.TrimSpace(ended.Message)
	}
	return crashing, message
}
