package podfailure_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/podfailure"
)

func TestPodProblems(t *testing.T) {
	pod := func(name string, status corev1.PodStatus) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: status}
	}
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{
				Name:  "login",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
			},
		}}
	}
	unschedulable := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available: 3 Insufficient cpu.",
	}}}
	crashed := waiting("CrashLoopBackOff", "back-off 10s restarting failed container=login pod=a_ns(uid)")
	crashed.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
		ExitCode: 1, Reason: "Error",
	}
	state := func(status corev1.ContainerStatus) corev1.PodStatus {
		status.Name = "login"
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}}
	}
	ended := corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "no such host\n"},
	}
	completed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	initializing := waiting("PodInitializing", "")
	initializing.InitContainerStatuses = []corev1.ContainerStatus{
		{
			Name: "initconf",
			State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{
					Reason: "CreateContainerConfigError", Message: `secret "x" not found`,
				},
			},
		},
	}
	leaving := pod("a", crashed)
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	tests := map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"no pods":                    {},
		"running pod":                {pods: []corev1.Pod{pod("a", corev1.PodStatus{Phase: corev1.PodRunning})}},
		"starting pod":               {pods: []corev1.Pod{pod("a", waiting("ContainerCreating", ""))}},
		"terminating pod is ignored": {pods: []corev1.Pod{leaving}},
		"unschedulable pod": {
			pods: []corev1.Pod{pod("a", unschedulable)},
			want: "pod a: Unschedulable (0/3 nodes are available: 3 Insufficient cpu.)",
		},
		"image that cannot be pulled": {
			pods: []corev1.Pod{pod("a", waiting("ImagePullBackOff", `Back-off pulling image "x"`))},
			want: `pod a: container login has ImagePullBackOff (Back-off pulling image "x")`,
		},
		"exit code of a crashing container": {
			pods: []corev1.Pod{pod("a", crashed)},
			want: "pod a: container login has CrashLoopBackOff (exit code 1, Error)",
		},
		"termination message of a container": {
			pods: []corev1.Pod{pod("a", state(corev1.ContainerStatus{State: ended, RestartCount: 1}))},
			want: "pod a: container login has CrashLoopBackOff (exit code 1, Error: no such host)",
		},
		"restart is not a recovery": {
			pods: []corev1.Pod{
				pod("a", state(corev1.ContainerStatus{State: running, LastTerminationState: ended, RestartCount: 2})),
			},
			want: "pod a: container login has CrashLoopBackOff (exit code 1, Error: no such host)",
		},
		"single crash is ignored": {
			pods: []corev1.Pod{
				pod("a", state(corev1.ContainerStatus{State: running, LastTerminationState: ended, RestartCount: 1})),
			},
		},
		"crashes of a ready container are ignored": {
			pods: []corev1.Pod{
				pod("a", state(corev1.ContainerStatus{
					State: running, LastTerminationState: ended, RestartCount: 9, Ready: true,
				})),
			},
		},
		"completed container": {
			pods: []corev1.Pod{pod("a", state(corev1.ContainerStatus{State: completed}))},
		},
		"init containers come first": {
			pods: []corev1.Pod{pod("a", initializing)},
			want: `pod a: container initconf has CreateContainerConfigError (secret "x" not found)`,
		},
		"evicted pod": {
			pods: []corev1.Pod{
				pod("a", corev1.PodStatus{
					Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on memory.",
				}),
			},
			want: "pod a: Evicted (The node was low on memory.)",
		},
		"each type of failure once, sorted by pod name": {
			pods: []corev1.Pod{pod("c", crashed), pod("b", unschedulable), pod("a", crashed)},
			want: "pod a and 1 more: container login has CrashLoopBackOff (exit code 1, Error); pod b: " +
				"Unschedulable (0/3 nodes are available: 3 Insufficient cpu.)",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := podfailure.Describe(test.pods); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}
