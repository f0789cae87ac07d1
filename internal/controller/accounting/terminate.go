package accounting

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmdbd"
)

// The grace period of a day is for slurmdbds that convert their database, but it holds for all containers of the pod:
// one that ignores SIGTERM, such as a sidecar whose first process is tail or sleep, would use it up, and no StatefulSet
// creates a pod before the former one has terminated. So the operator shortens it for a slurmdbd that converts nothing.

// lateConversion is how long a pod may take to terminate whose slurmdbd has not connected to its database. It may do so
// just before it gets SIGTERM, and convert a small database.
const lateConversion = 10 * time.Minute

// exitLimit returns how long a pod may take to terminate from now on; 0 for as long as its spec says.
func (s *scope) exitLimit(pod *corev1.Pod) time.Duration {
	daemon, report := statusOf(pod), s.reportOf(pod)
	switch {
	case !hasTimeToConvert(pod) || s.mayConvert(pod):
		return 0
	case hasAnswered(pod), report != nil && report.Phase == slurmdbd.Started,
		pod.DeletionTimestamp != nil && daemon != nil && daemon.State.Terminated != nil:
		return 2 * exitTimeout
	}
	return lateConversion
}

// hasTimeToConvert reports whether the operator, and not the user, set a pod's grace period.
func hasTimeToConvert(pod *corev1.Pod) bool {
	return slices.ContainsFunc(containerOf(&pod.Spec).Args,
		func(argument string) bool { return strings.HasPrefix(argument, exitOption) })
}

// wasReady reports whether a pod that is being deleted was ready before. A kubelet that was restarted does not probe
// such a pod, and counts its containers as started and ready from then on. The status of containers is otherwise that
// of the time when the deletion began, until all of them have exited.
func wasReady(pod *corev1.Pod) bool {
	deleted := pod.DeletionTimestamp.Add(-gracePeriod(pod))
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue &&
			condition.LastTransitionTime.Time.Before(deleted)
	})
}

// gracePeriod returns how long a pod that is being deleted may take to terminate.
func gracePeriod(pod *corev1.Pod) time.Duration {
	if pod.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
}

// shortenTermination limits how long pods that are being deleted may take to terminate.
func (r *Reconciler) shortenTermination(ctx context.Context, scope *scope) error {
	for i := range scope.pods {
		pod := &scope.pods[i]
		limit := scope.exitLimit(pod)
		if pod.DeletionTimestamp == nil || limit == 0 || gracePeriod(pod) <= limit {
			continue
		}
		if err := r.Children.ShortenTermination(ctx, pod, limit); err != nil {
			return err
		}
	}
	return nil
}

// describeTermination describes a pod that is being deleted for longer than slurmdbd needs if it converts nothing;
// empty if there is none.
func describeTermination(scope *scope) string {
	for i := range scope.pods {
		pod := &scope.pods[i]
		if pod.DeletionTimestamp == nil || pod.DeletionTimestamp.Sub(scope.now) <= lateConversion {
			continue
		}
		return fmt.Sprintf("pod %s is being deleted, and the next one is created when all its containers have exited, at "+
			"the latest at %s: slurmdbd may be converting its database, and nothing shows what it does; if kubectl logs %s "+
			"--container=slurmdbd shows that it converts nothing, kubectl delete pod %s --grace-period=30 ends the others",
			pod.Name, pod.DeletionTimestamp.UTC().Format(time.RFC3339), pod.Name, pod.Name)
	}
	return ""
}
