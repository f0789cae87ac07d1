package accounting

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmdbd"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podfailure"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
)

// A slurmdbd of a new release converts its database before it serves clients, for hours if the database is large. If it
// is interrupted, it has to convert again what was not committed. So a pod is replaced only while its slurmdbd
// certainly converts nothing.

// replaceable returns the pod to replace by one of the current template; nil if there is none.
func replaceable(scope *scope) *corev1.Pod {
	pod := outdated(scope)
	if pod == nil || pod.DeletionTimestamp != nil || scope.mayConvert(pod) {
		return nil
	}
	return pod
}

// outdated returns the pod that does not have the current template; nil if there is none.
func outdated(scope *scope) *corev1.Pod {
	if scope.statefulSet == nil {
		return nil
	}
	for i := range scope.pods {
		if podtemplate.Outdated(&scope.pods[i], scope.statefulSet) {
			return &scope.pods[i]
		}
	}
	return nil
}

// mayConvert reports whether slurmdbd may be converting its database in a pod. It may until it has started, unless its
// helper reports that it waits for the database: then its configuration may have to be corrected. Helpers of earlier
// versions report only errors, and those for two minutes, even if slurmdbd has connected since.
func (s *scope) mayConvert(pod *corev1.Pod) bool {
	if !isRunning(pod) || hasAnswered(pod) {
		return false
	}
	report := s.reportOf(pod)
	return report == nil || report.Phase != slurmdbd.Started && report.Phase != slurmdbd.Waiting
}

// reportOf returns the report of a pod's helper; nil if it has not answered.
func (s *scope) reportOf(pod *corev1.Pod) *slurmdbd.Report {
	if running(s.pods) != pod {
		return nil
	}
	return s.database
}

// running returns the pod in which slurmdbd runs; nil if there is none.
func running(pods []corev1.Pod) *corev1.Pod {
	for i := range pods {
		if pods[i].Status.PodIP != "" && isRunning(&pods[i]) {
			return &pods[i]
		}
	}
	return nil
}

// isRunning reports whether slurmdbd runs in a pod, whatever other containers do. It counts as running if the kubelet
// has not reported its state.
func isRunning(pod *corev1.Pod) bool {
	if status := statusOf(pod); status != nil {
		return status.State.Running != nil
	}
	return pod.Status.Phase == corev1.PodRunning
}

// hasAnswered reports whether slurmdbd has answered a probe since its container was started, so that it has converted
// its database. Without a probe, Kubernetes counts a container as started and ready as soon as it runs.
func hasAnswered(pod *corev1.Pod) bool {
	container, status := containerOf(&pod.Spec), statusOf(pod)
	if pod.DeletionTimestamp != nil {
		return container.ReadinessProbe != nil && wasReady(pod)
	}
	return container.ReadinessProbe != nil && isReady(*pod) ||
		container.StartupProbe != nil && status != nil && status.Started != nil && *status.Started
}

// containerOf returns slurmdbd's container in a pod; an empty one if there is none.
func containerOf(pod *corev1.PodSpec) corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == string(naming.Slurmdbd) {
			return pod.Containers[i]
		}
	}
	return corev1.Container{}
}

// statusOf returns the status of slurmdbd's container; nil if the kubelet has not reported it.
func statusOf(pod *corev1.Pod) *corev1.ContainerStatus {
	index := slices.IndexFunc(pod.Status.ContainerStatuses,
		func(status corev1.ContainerStatus) bool { return status.Name == string(naming.Slurmdbd) })
	if index < 0 {
		return nil
	}
	return &pod.Status.ContainerStatuses[index]
}

// describeConversion describes the conversion that slurmdbd makes, or that it may make while its pod should be
// replaced; empty if nothing waits for a conversion.
func describeConversion(scope *scope) string {
	if pod := running(scope.pods); pod != nil && isConverting(scope) && !isReady(*pod) {
		return describeSteps(pod, scope)
	}
	pod := outdated(scope)
	if pod == nil || pod.DeletionTimestamp != nil || !scope.mayConvert(pod) {
		return ""
	}
	cause := "its log does not show yet what it does"
	switch report := scope.reportOf(pod); {
	case report == nil:
		cause = "the operator's helper in the pod does not answer"
	case report.Phase == "":
		cause = "the helper in the pod is that of an earlier version of the operator, which does not report it"
	}
	return fmt.Sprintf("pod %s has to be replaced, but slurmdbd has not started yet and may be converting its database "+
		"(%s); wait until it has started, or, if kubectl logs %s shows that it converts nothing, delete the pod", pod.Name,
		cause, pod.Name)
}

// describeSteps describes the conversion that slurmdbd makes in a pod.
func describeSteps(pod *corev1.Pod, scope *scope) string {
	message := "slurmdbd"
	if scope.database.Release != "" {
		message += " " + scope.database.Release
	}
	message += fmt.Sprintf(" converts its database since %s (last step: %s); slurmctld keeps accounting records "+
		"meanwhile; wait, and do not interrupt it: what it has converted would be lost",
		scope.database.Since.UTC().Format(time.RFC3339), scope.database.Step)
	switch {
	case pod.DeletionTimestamp != nil:
		message += "; pod " + pod.Name + " was deleted, and terminates when it is done"
	case outdated(scope) == pod:
		message += "; pod " + pod.Name + " is replaced by one of the changed spec when it is done"
	}
	if trouble := podfailure.Describe(scope.pods); trouble != "" {
		message += "; " + trouble
	}
	return message
}

// isConverting reports whether slurmdbd says that it converts its database.
func isConverting(scope *scope) bool {
	return scope.database != nil && scope.database.Phase == slurmdbd.Converting
}
