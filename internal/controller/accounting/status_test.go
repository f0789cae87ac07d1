package accounting

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmdbd"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

func TestJudge(t *testing.T) {
	starting := corev1.Pod{
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "slurmdbd", ReadinessProbe: &corev1.Probe{}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
	}
	ready := *starting.DeepCopy()
	ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	ending := *ready.DeepCopy()
	ending.DeletionTimestamp = new(metav1.Now())
	crashing := *starting.DeepCopy()
	crashing.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "slurmdbd", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"},
		},
	}}
	settled := appsv1.StatefulSetStatus{ObservedGeneration: 1}
	tests := map[string]struct {
		set       appsv1.StatefulSetStatus
		pod       corev1.Pod
		report    *slurmdbd.Report
		since     time.Duration
		reachable metav1.ConditionStatus
		reason    string // of Ready
		message   string
		degraded  bool
	}{
		"waits for the StatefulSet to be observed": {
			appsv1.StatefulSetStatus{}, corev1.Pod{}, nil, 0, metav1.ConditionUnknown, slinkyv1beta1.ReasonReconciling,
			"", false,
		},
		"waits for the pod to be replaced": {
			appsv1.StatefulSetStatus{ObservedGeneration: 1, UpdateRevision: "2"}, ready, nil, 0,
			metav1.ConditionTrue, slinkyv1beta1.ReasonReconciling, "", false,
		},
		"waits for slurmdbd to start": {
			settled, starting, nil, 0, metav1.ConditionUnknown, slinkyv1beta1.ReasonPodsNotReady, "", false,
		},
		"waits for slurmdbd to connect": {
			settled, starting, &slurmdbd.Report{Phase: slurmdbd.Starting}, 0, metav1.ConditionUnknown,
			slinkyv1beta1.ReasonPodsNotReady, "", false,
		},
		"waits for slurmdbd to convert its tables": {
			settled, starting, &slurmdbd.Report{Phase: slurmdbd.Converting, Step: "pre-converting job table for linux"}, 0,
			metav1.ConditionTrue, slinkyv1beta1.ReasonConvertingDatabase, "pre-converting job table for linux", false,
		},
		"ignores a terminating pod": {
			settled, ending, nil, 0, metav1.ConditionUnknown, slinkyv1beta1.ReasonPodsNotReady, "", false,
		},
		"reports that the server requires TLS": {
			settled, starting, &slurmdbd.Report{Code: 3159, Text: "Connections using insecure transport are prohibited"}, 0,
			metav1.ConditionFalse, slinkyv1beta1.ReasonDatabaseAccessDenied, "; set spec.storageConfig.tls", true,
		},
		"names the certificate for an error of TLS": {
			settled, starting, &slurmdbd.Report{Code: 2026, Text: "TLS/SSL error: Hostname verification failed"},
			2 * databaseStartGrace, metav1.ConditionFalse, slinkyv1beta1.ReasonDatabaseUnreachable,
			"its certificate is for mariadb and from the CA in spec.storageConfig.tls", true,
		},
		"waits for the server to start": {
			settled, starting, &slurmdbd.Report{Code: 2002, Text: "Can't connect to server"}, 0,
			metav1.ConditionFalse, slinkyv1beta1.ReasonDatabaseUnreachable,
			"Can't connect to server; check that the server runs", false,
		},
		"reports that the server is down": {
			settled, starting, &slurmdbd.Report{Code: 2002, Text: "Can't connect to server"}, databaseStartGrace,
			metav1.ConditionFalse, slinkyv1beta1.ReasonDatabaseUnreachable,
			"Can't connect to server; check that the server runs", true,
		},
		"reports that the password is wrong": {
			settled, starting, &slurmdbd.Report{Code: 1045, Text: "Access denied"}, 0,
			metav1.ConditionFalse, slinkyv1beta1.ReasonDatabaseAccessDenied,
			"Access denied; check spec.storageConfig, the password in Secret database", true,
		},
		"reports why slurmdbd crashes": {
			settled, crashing, nil, 0, metav1.ConditionUnknown, slinkyv1beta1.ReasonPodsFailing, "CrashLoopBackOff",
			true,
		},
		"is ready when slurmdbd answers": {
			settled, ready, nil, 0, metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected,
			"port 6819 of the Service slurm-accounting", false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			scope.statefulSet = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Status: test.set}
			scope.statefulSet.Spec.Template.Annotations = map[string]string{
				slinkyv1beta1.GroupName + "/template-hash": test.set.UpdateRevision,
			}
			scope.pods, scope.database = []corev1.Pod{test.pod}, test.report
			scope.now = time.Unix(1_800_000_000, 0)
			database := judgeDatabase(scope)
			database.since = scope.now.Add(-test.since)
			verdict := judge(scope, database)
			if database.Status != test.reachable || verdict.Reason != test.reason ||
				!strings.Contains(verdict.Message, test.message) {
				t.Errorf("database %+v, verdict %+v", database, verdict)
			}
			conditions := status.NewConditions(1, nil, metav1.NewTime(scope.now))
			conditions.Summarize(verdict)
			if degraded := *conditions.Configuration()[0].Status == metav1.ConditionTrue; degraded != test.degraded {
				t.Errorf("degraded is %v", degraded)
			}
			if verdict.Ready() != (test.reason == slinkyv1beta1.ReasonAsExpected) {
				t.Errorf("ready is %v", verdict.Ready())
			}
		})
	}
}

func TestExternalSlurmdbdIsNotReadyWhileAPodRuns(t *testing.T) {
	gone := status.Ready("slurmdbd runs elsewhere")
	terminating := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "slurm-accounting-0", DeletionTimestamp: new(metav1.Now()),
	}}
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want status.Verdict
	}{
		"there is no pod": {nil, gone},
		"the pod terminates": {[]corev1.Pod{terminating}, status.Progressing(slinkyv1beta1.ReasonReconciling,
			"slurmdbd is to run elsewhere, and pod slurm-accounting-0 has not terminated yet")},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			scope.pods = test.pods
			if got := judgeRemoval(scope, gone); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}
