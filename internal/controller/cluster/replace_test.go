package cluster

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

func TestReplaceable(t *testing.T) {
	const stamp = slinkyv1beta1.GroupName + "/template-hash"
	pod := func(name, revision string, ready bool) corev1.Pod {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: revision},
			Annotations: map[string]string{stamp: revision},
		}}
		pod.Spec.Volumes = []corev1.Volume{onClaim("slurm-controller-state")}
		pod.Status.Phase = corev1.PodRunning
		if ready {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		return pod
	}
	crashed := func(name, revision string) corev1.Pod {
		pod := pod(name, revision, false)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerSlurmctld, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"},
		}}}
		return pod
	}
	pending := func(name, revision string) corev1.Pod {
		pod := pod(name, revision, false)
		pod.Status.Phase = corev1.PodPending
		return pod
	}
	deleted := func(pod corev1.Pod) corev1.Pod {
		pod.DeletionTimestamp = new(metav1.NewTime(start))
		return pod
	}
	tests := map[string]struct {
		pods   []corev1.Pod
		silent bool // the agent of the last pod
		single bool
		want   string
	}{
		"nothing when all have the current template": {
			pods: []corev1.Pod{pod("a", "new", true), pod("b", "new", false)},
		},
		"the standby first": {
			pods: []corev1.Pod{pod("a", "old", true), pod("b", "old", false)}, want: "b",
		},
		"the standby first, whichever it is": {
			pods: []corev1.Pod{pod("a", "old", false), pod("b", "old", true)}, want: "a",
		},
		"the active last": {
			pods: []corev1.Pod{pod("a", "old", true), pod("b", "new", false)}, want: "a",
		},
		"nothing while another is not up": {
			pods: []corev1.Pod{pod("a", "old", true), pod("b", "new", false)}, silent: true,
		},
		"nothing while another is missing": {
			pods: []corev1.Pod{pod("a", "old", true)},
		},
		"a standby that cannot start, without waiting for it": {
			pods: []corev1.Pod{pod("a", "old", true), crashed("b", "old")}, silent: true, want: "b",
		},
		"a standby that cannot start, before one that runs": {
			pods: []corev1.Pod{pod("a", "old", false), crashed("b", "old")}, silent: true, want: "b",
		},
		"a standby that was never started": {
			pods: []corev1.Pod{pod("a", "old", true), pending("b", "old")}, silent: true, want: "b",
		},
		"a standby whose agent does not answer": {
			pods: []corev1.Pod{pod("a", "old", true), pod("b", "old", false)}, silent: true, want: "b",
		},
		"one of two that cannot start": {
			pods: []corev1.Pod{crashed("a", "old"), crashed("b", "old")}, silent: true, want: "a",
		},
		"nothing while the first of two that cannot start comes up": {
			pods: []corev1.Pod{crashed("a", "old"), pending("b", "new")}, silent: true,
		},
		"nothing while the first of two that cannot start is deleted": {
			pods: []corev1.Pod{crashed("a", "old"), deleted(crashed("b", "old"))}, silent: true,
		},
		"the second of two that cannot start, when the first is up": {
			pods: []corev1.Pod{crashed("a", "old"), pod("b", "new", true)}, want: "a",
		},
		"not the active while the other cannot start from the new template": {
			pods: []corev1.Pod{pod("a", "old", true), crashed("b", "new")}, silent: true,
		},
		"not a pod that cannot start from the new template": {
			pods: []corev1.Pod{pod("a", "new", true), crashed("b", "new")}, silent: true,
		},
		"the only pod": {pods: []corev1.Pod{pod("a", "old", true)}, single: true, want: "a"},
		"the only pod, also when it does not run": {
			pods: []corev1.Pod{pod("a", "old", false)}, silent: true, single: true, want: "a",
		},
		"not the only pod when it is up to date": {pods: []corev1.Pod{pod("a", "new", true)}, single: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scope := newScope(func(s *scope) {
				s.controller.Spec.HA = slinkyv1beta1.ControllerHA{Enabled: !test.single, Backups: 1}
				s.statefulSet = &appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{UpdateRevision: "new"}}
				s.statefulSet.Spec.Template.Annotations = map[string]string{stamp: "new"}
				s.pods = test.pods
				for i, pod := range test.pods {
					if !test.silent || i < len(test.pods)-1 {
						s.agents[pod.Name] = agent.Report{}
					}
				}
			})
			got := ""
			if pod := replaceable(scope); pod != nil {
				got = pod.Name
			}
			if got != test.want {
				t.Errorf("replaces %q, want %q", got, test.want)
			}
		})
	}
}

// Nothing reports that an agent has begun to answer, and a standby never becomes ready: without a poll, the active
// slurmctld would keep the old template.
func TestReplacementIsPolled(t *testing.T) {
	const stamp = slinkyv1beta1.GroupName + "/template-hash"
	for name, test := range map[string]struct {
		standby string // the template of the standby
		active  string
		silent  bool // the agent of the standby
		refused bool // the latest configuration
		want    time.Duration
	}{
		"nothing is replaced":                                {"new", "new", false, false, 0},
		"agent of the new standby does not answer yet":       {"new", "old", true, false, podInterval},
		"the active one is to be replaced":                   {"new", "old", false, false, podInterval},
		"agent of the last pod does not answer yet":          {"new", "new", true, false, podInterval},
		"pods are replaced while a configuration is refused": {"new", "old", false, true, podInterval},
		"a configuration is refused":                         {"new", "new", false, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(func(s *scope) {
				s.controller.Spec.HA = slinkyv1beta1.ControllerHA{Enabled: true, Backups: 1}
			}, withState, promotedAsBuilt(t))
			scope.statefulSet = ranWith(scope.claim)
			scope.statefulSet.Spec.Template.Annotations[stamp] = "new"
			for i, template := range []string{test.active, test.standby} {
				pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Name: naming.ControllerPod("slurm", i), Annotations: map[string]string{stamp: template},
				}}
				pod.Spec.Volumes = []corev1.Volume{onClaim(scope.claim)}
				pod.Status.Phase = corev1.PodRunning
				scope.pods = append(scope.pods, pod)
				if i == 0 || !test.silent {
					scope.agents[pod.Name] = agent.Report{FilesHash: scope.promoted.hash, RunningHash: scope.promoted.hash}
				}
			}
			if test.refused {
				scope.controller.Spec.ExtraConf = "SchedulerType=sched/builtin"
				validateWith(hashOf(t, scope), &validation.Report{Outcome: validation.Refused})(scope)
			}
			if got := decide(scope).requeueAfter(scope); got != test.want {
				t.Errorf("polled after %s, want %s", got, test.want)
			}
			verdict := judgePods(scope)
			if ready := verdict == status.Ready("slurmctld is ready"); ready != (test.want == 0) {
				t.Errorf("the verdict is %+v", verdict)
			}
		})
	}
}

func TestPodsOfAnotherOperatorAreNotPolled(t *testing.T) {
	scope := newScope(madeByOther)
	scope.pods = []corev1.Pod{{Status: corev1.PodStatus{Phase: corev1.PodRunning}}}
	if scope.mustPollPods() {
		t.Error("a pod without an agent is polled")
	}
}
