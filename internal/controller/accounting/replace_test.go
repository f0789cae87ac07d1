package accounting

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmdbd"
)

// The kubelet must not kill a slurmdbd that converts its database, and a running slurmdbd is not replaced only because
// an earlier operator gave it less time.
func TestSlurmdbdHasTimeToConvertItsDatabase(t *testing.T) {
	const stamp = slinkyv1beta1.GroupName + "/template-hash"
	const byDefault = 30
	for name, test := range map[string]struct {
		template, slurmdbd string
		want               int64
	}{
		"a day by default":    {"", "", 24 * 60 * 60},
		"as long as the user": {`{"terminationGracePeriodSeconds": 600}`, "", 600},
		"no time if the user": {`{"terminationGracePeriodSeconds": 0}`, "", 0},
		// Nothing keeps SIGTERM back, so that the time would only be that of other containers.
		"not without the helper":           {"", `{"command": ["slurmdbd"], "args": ["-D"]}`, byDefault},
		"not if the helper gets no signal": {"", `{"command": ["/bin/sh", "-c", "slurmdbd -D"]}`, byDefault},
		"not without the helper, by template": {
			`{"containers": [{"name": "slurmdbd", "command": ["slurmdbd"]}]}`, "", byDefault},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			scope.accounting.Spec.Template.Spec.Raw = []byte(test.template)
			scope.accounting.Spec.Slurmdbd.Raw = []byte(test.slurmdbd)
			template := decide(scope).children.statefulSet.Spec.Template
			got := int64(byDefault)
			if set := template.Spec.TerminationGracePeriodSeconds; set != nil {
				got = *set
			}
			if got != test.want {
				t.Errorf("slurmdbd is killed after %d s", got)
			}
			args := template.Spec.Containers[0].Args
			if limited := slices.Contains(args, "--exit-timeout=30s"); limited != (test.want == 24*60*60) {
				t.Errorf("the helper runs with %q", args)
			}
			// The digest of the template of earlier operators, which did not have the field.
			if got := template.Annotations[stamp]; test.template+test.slurmdbd == "" && got != "1798233c844876f7" {
				t.Errorf("running slurmdbds are replaced, because their template is %s now", got)
			}
		})
	}
}

// newSlurmdbd returns a pod of an old template, in which slurmdbd runs and has not started.
func newSlurmdbd(changes ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "slurm-accounting-0", Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "old"},
			Annotations: map[string]string{slinkyv1beta1.GroupName + "/template-hash": "old"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "slurmdbd", Image: "slurm-operator/slurmdbd:26.05", StartupProbe: &corev1.Probe{},
			ReadinessProbe: &corev1.Probe{},
		}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{{
				Name: "slurmdbd", Started: new(false), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}},
		},
	}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

// replacing sets the pod, whose template is not that of the StatefulSet any more, and the report of its helper.
func replacing(scope *scope, pod corev1.Pod, report *slurmdbd.Report) {
	scope.statefulSet = &appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{UpdateRevision: "new"}}
	scope.statefulSet.Spec.Template.Annotations = map[string]string{slinkyv1beta1.GroupName + "/template-hash": "new"}
	scope.pods, scope.database = []corev1.Pod{pod}, report
}

func ready(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func waitingFor(reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason},
		}
	}
}

// A pod is replaced when its template changes, but not while its slurmdbd may be converting its database.
func TestConvertingSlurmdbdIsNotReplaced(t *testing.T) {
	const converting = "converts its database since 2027-01-15T08:00:00Z (last step: pre-converting job table for linux)"
	conversion := &slurmdbd.Report{
		Phase: slurmdbd.Converting, Release: "26.05.1", Since: time.Unix(1_800_000_000, 0),
		Step: "pre-converting job table for linux",
	}
	starting := &slurmdbd.Report{Phase: slurmdbd.Starting, Release: "26.05.1"}
	denied := &slurmdbd.Report{Phase: slurmdbd.Waiting, Code: 1045, Text: "Access denied"}
	for name, test := range map[string]struct {
		pod      corev1.Pod
		report   *slurmdbd.Report
		replaced bool
		message  string
	}{
		"slurmdbd answers":     {newSlurmdbd(ready), nil, true, ""},
		"slurmdbd has started": {newSlurmdbd(), &slurmdbd.Report{Phase: slurmdbd.Started}, true, ""},
		"slurmdbd has answered, and its helper is silent": {newSlurmdbd(func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].Started = new(true)
		}), nil, true, ""},
		"slurmdbd has lost its database": {newSlurmdbd(),
			&slurmdbd.Report{Phase: slurmdbd.Started, Code: 2002, Text: "Can't connect"}, true, ""},
		"the password is wrong": {newSlurmdbd(), denied, true, ""},
		// It repeats the last error for two minutes, also when the database is back.
		"the password is wrong, says the helper of an earlier version": {newSlurmdbd(),
			&slurmdbd.Report{Code: 1045, Text: "Access denied"}, false, "that of an earlier version"},
		"the image cannot be pulled":     {newSlurmdbd(waitingFor("ImagePullBackOff")), nil, true, ""},
		"slurmdbd crashes":               {newSlurmdbd(waitingFor("CrashLoopBackOff")), nil, true, ""},
		"an init container fails":        {newSlurmdbd(waitingFor("PodInitializing")), nil, true, ""},
		"the pod is not scheduled":       {corev1.Pod{ObjectMeta: newSlurmdbd().ObjectMeta}, nil, true, ""},
		"the pod is being deleted":       {newSlurmdbd(ready, deleted), nil, false, ""},
		"slurmdbd converts its database": {newSlurmdbd(), conversion, false, "slurmdbd 26.05.1 " + converting},
		"a converting pod was deleted": {newSlurmdbd(deleted), conversion, false,
			"pod slurm-accounting-0 was deleted, and terminates when it is done"},
		"a conversion was interrupted before": {newSlurmdbd(func(pod *corev1.Pod) {
			status := &pod.Status.ContainerStatuses[0]
			status.RestartCount, status.LastTerminationState.Terminated = 2, &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "OOMKilled",
			}
		}), conversion, false, "(exit code 137, OOMKilled)"},
		"slurmdbd has connected, and logs nothing": {newSlurmdbd(), starting, false, "its log does not show yet"},
		"the helper is silent": {newSlurmdbd(), nil, false,
			"the operator's helper in the pod does not answer); wait until it has started, or, if kubectl logs " +
				"slurm-accounting-0 shows that it converts nothing, delete the pod"},
		"the helper of an earlier version reports no error": {newSlurmdbd(), &slurmdbd.Report{}, false,
			"that of an earlier version"},
		"the kubelet has reported no container": {newSlurmdbd(func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = nil
		}), nil, false, "may be converting"},
		"another container does not start": {newSlurmdbd(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending }),
			conversion, false, converting},
		"nothing shows whether slurmdbd answers": {newSlurmdbd(ready, func(pod *corev1.Pod) {
			pod.Spec.Containers[0].StartupProbe, pod.Spec.Containers[0].ReadinessProbe = nil, nil
			pod.Status.ContainerStatuses[0].Started = new(true)
		}), nil, false, "may be converting"},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			replacing(scope, test.pod, test.report)
			if replaced := replaceable(scope) != nil; replaced != test.replaced {
				t.Errorf("the pod is replaced: %v", replaced)
			}
			message := describeConversion(scope)
			if (test.message == "") != (message == "") || !strings.Contains(message, test.message) {
				t.Errorf("the message is %q", message)
			}
			if verdict := judge(scope, judgeDatabase(scope)); message != "" &&
				(verdict.Reason != slinkyv1beta1.ReasonConvertingDatabase || verdict.Message != message) {
				t.Errorf("the verdict is %+v", verdict)
			}
			// slurmdbd's log causes no event.
			if message != "" && requeueAfter(scope) == 0 {
				t.Error("nothing ends the wait")
			}
		})
	}
}

func deleted(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) }
