package accounting

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmdbd"
)

// withHelper gives slurmdbd's container the helper, and the pod a day to terminate.
func withHelper(pod *corev1.Pod) {
	pod.Spec.TerminationGracePeriodSeconds = new(int64(terminationGraceSeconds))
	pod.Spec.Containers[0].Args = slurmdbdContainer(newScope()).Args
	pod.Spec.Containers[0].Command = slurmdbdContainer(newScope()).Command
	limitTermination(&corev1.PodSpec{Containers: pod.Spec.Containers})
}

// deletedWith returns a change that deletes a pod at a time, with a grace period in seconds.
func deletedWith(at time.Time, grace int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.DeletionTimestamp = new(metav1.NewTime(at.Add(time.Duration(grace) * time.Second)))
		pod.DeletionGracePeriodSeconds = &grace
	}
}

func readySince(at time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		ready(pod)
		pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(at)
	}
}

// The grace period of a day is that of all containers. One that ignores SIGTERM must not keep the pod for so long, and
// with it the next slurmdbd.
func TestPodTerminatesSoonUnlessSlurmdbdMayConvert(t *testing.T) {
	const day, minute, tenMinutes int64 = terminationGraceSeconds, 60, 600
	now := time.Unix(1_800_000_000, 0)
	started := func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].Started = new(true) }
	byUser := deletedWith(now.Add(-time.Second), day)
	waits, has := &slurmdbd.Report{Phase: slurmdbd.Waiting}, &slurmdbd.Report{Phase: slurmdbd.Started}
	for name, test := range map[string]struct {
		changes []func(*corev1.Pod)
		report  *slurmdbd.Report
		want    int64 // 0 if the pod is not deleted, or not again; -1 for its own grace period
	}{
		"replaced when it answers":                 {[]func(*corev1.Pod){withHelper, ready}, nil, minute},
		"replaced when it has started":             {[]func(*corev1.Pod){withHelper}, has, minute},
		"replaced while it waits for its database": {[]func(*corev1.Pod){withHelper}, waits, tenMinutes},
		"replaced while its image is pulled": {[]func(*corev1.Pod){withHelper, waitingFor("ErrImagePull")}, nil,
			tenMinutes},
		"not replaced while it converts": {[]func(*corev1.Pod){withHelper}, &slurmdbd.Report{Phase: "Converting"}, 0},
		"replaced with the user's time":  {[]func(*corev1.Pod){withHelper, ready, ofUser}, nil, -1},
		"replaced without the helper":    {[]func(*corev1.Pod){ready}, nil, -1},
		"deleted when it answered": {[]func(*corev1.Pod){withHelper, byUser, readySince(now.Add(-time.Hour))}, nil,
			minute},
		"deleted when it has started": {[]func(*corev1.Pod){withHelper, byUser}, has, minute},
		"deleted while it waits":      {[]func(*corev1.Pod){withHelper, byUser}, waits, tenMinutes},
		"deleted while it converts": {[]func(*corev1.Pod){withHelper, byUser}, &slurmdbd.Report{Phase: "Converting"},
			0},
		"deleted, and the helper is silent":    {[]func(*corev1.Pod){withHelper, byUser}, nil, 0},
		"deleted, and slurmdbd has exited":     {[]func(*corev1.Pod){withHelper, byUser, exited}, nil, minute},
		"deleted, and it has little time":      {[]func(*corev1.Pod){withHelper, deletedWith(now, 30)}, has, 0},
		"deleted, and the user has given time": {[]func(*corev1.Pod){withHelper, byUser, ofUser}, has, 0},
		// A kubelet that was restarted does not probe a pod that is being deleted, and reports that it has started.
		"deleted, and no longer probed": {[]func(*corev1.Pod){withHelper, byUser, started, readySince(now)}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			scope.now = now
			replacing(scope, newSlurmdbd(test.changes...), test.report)
			got := int64(0)
			record := func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
				got = -1
				if grace := (&client.DeleteOptions{}).ApplyOptions(options).GracePeriodSeconds; grace != nil {
					got = *grace
				}
				return nil
			}
			if scope.pods[0].DeletionTimestamp != nil {
				scope.pods[0].Finalizers = []string{"example.com/mine"} // or it would not exist
			}
			kubernetes := newKubernetes(t, scope, interceptor.Funcs{Delete: record})
			reconciler := &Reconciler{Client: kubernetes, Children: child.NewApplier(kubernetes)}
			plan := decide(scope)
			if err := reconciler.act(t.Context(), scope, plan); err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("the pod is deleted with a grace period of %d s", got)
			}
		})
	}
}

// ofUser makes the grace period that of the user, who wants the kubelet to decide alone.
func ofUser(pod *corev1.Pod) {
	pod.Spec.Containers[0].Args = slurmdbdContainer(newScope()).Args
}

func exited(pod *corev1.Pod) {
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
}

// What the operator cannot end, the user can.
func TestTerminatingPodIsReported(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	const remedy = "kubectl delete pod slurm-accounting-0 --grace-period=30"
	for name, test := range map[string]struct {
		grace  int64
		report *slurmdbd.Report
		want   string
	}{
		"the helper is silent":   {terminationGraceSeconds, nil, "at the latest at 2027-01-16T08:00:00Z"},
		"the log shows nothing":  {terminationGraceSeconds, &slurmdbd.Report{Phase: slurmdbd.Starting}, remedy},
		"it terminates soon":     {30, nil, "slurmdbd's pod is being replaced"},
		"it converts for a time": {terminationGraceSeconds, &slurmdbd.Report{Phase: slurmdbd.Converting}, "converts its"},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			scope.now = now
			replacing(scope, newSlurmdbd(withHelper, deletedWith(now, test.grace)), test.report)
			verdict := judge(scope, judgeDatabase(scope))
			if !strings.Contains(verdict.Message, test.want) || verdict.Ready() {
				t.Errorf("the verdict is %+v", verdict)
			}
			if requeueAfter(scope) == 0 {
				t.Error("nothing ends the wait")
			}
		})
	}
}
