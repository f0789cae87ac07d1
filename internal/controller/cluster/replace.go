package cluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
)

// replaceable returns the next pod to replace by one of the current template. A slurmctld that cannot start is replaced
// first, because it cannot take over anyway; then the standbys; then the active one. Pods are replaced one at a time:
// while a pod is missing, being deleted, or of the current template and not up, no other is replaced. Standbys and the
// active one are replaced only while all others are up.
func replaceable(scope *scope) *corev1.Pod {
	if !scope.mayReplacePods() {
		return nil
	}
	if pod := &scope.pods[0]; !scope.controller.Spec.HA.Enabled {
		if !podtemplate.Outdated(pod, scope.statefulSet) {
			return nil
		}
		return pod
	}
	var stuck, standby, active *corev1.Pod
	for i := range scope.pods {
		pod := &scope.pods[i]
		if !podtemplate.Outdated(pod, scope.statefulSet) {
			continue
		}
		switch othersUp, othersSettled := scope.others(pod); {
		case !isReady(pod) && !isStarted(pod) && othersSettled && stuck == nil:
			stuck = pod
		case !isReady(pod) && othersUp:
			standby = pod
		case isReady(pod) && othersUp:
			active = pod
		}
	}
	switch {
	case stuck != nil:
		return stuck
	case standby != nil:
		return standby
	}
	return active
}

// mayReplacePods reports whether all pods exist, and none of them has a state that jobs depend on and that would be
// lost.
func (s *scope) mayReplacePods() bool {
	return len(s.pods) == len(naming.ControllerPods(s.controller)) && !slices.ContainsFunc(s.pods, isDeleted) &&
		(s.costlyPod() == "" || s.isQuiescent())
}

// others reports whether all other slurmctlds are up, and whether all others of the current template are.
func (s *scope) others(pod *corev1.Pod) (up, settled bool) {
	up, settled = true, true
	for i := range s.pods {
		other := &s.pods[i]
		// The pod is up if its agent answers.
		if _, answers := s.agents[other.Name]; other.Name == pod.Name || answers &&
			other.Status.Phase == corev1.PodRunning {
			continue
		}
		up = false
		settled = settled && podtemplate.Outdated(other, s.statefulSet)
	}
	return up, settled
}

// replace deletes a pod, if Kubernetes would create the next one.
func (r *Reconciler) replace(ctx context.Context, scope *scope, pod *corev1.Pod) error {
	if err := r.Children.AdmitsInPlaceOf(ctx, scope.statefulSet, pod); err != nil {
		return err
	}
	_, err := r.Children.Replace(ctx, pod, 0)
	return err
}

// admitsCostly returns the error with which Kubernetes would refuse a pod for which a configuration closes the
// partitions: they would stay closed.
func (r *Reconciler) admitsCostly(ctx context.Context, scope *scope, plan *plan) error {
	if len(plan.candidate.closedBefore) == 0 || scope.promoted.isClosed() || scope.statefulSet == nil {
		return nil
	}
	for i := range scope.pods {
		if pod := &scope.pods[i]; pod.Name == scope.costlyPod() {
			return r.Children.AdmitsInPlaceOf(ctx, scope.statefulSet, pod)
		}
	}
	return nil
}

// mustPollPods reports whether a pod is to be replaced, or an agent does not answer. That it answers causes no event,
// and a standby never becomes ready. Pods of another operator have no agent.
func (s *scope) mustPollPods() bool {
	return !s.isForeign() && (slices.ContainsFunc(s.pods, s.isReplaced) || slices.ContainsFunc(s.pods, s.isSilent))
}

// isSilent reports whether a pod runs, and its agent does not answer.
func (s *scope) isSilent(pod corev1.Pod) bool {
	_, answers := s.agents[pod.Name]
	return pod.Status.Phase == corev1.PodRunning && !answers
}

func isDeleted(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// isStarted reports whether slurmctld runs in a pod. It counts as running if the kubelet has not reported its state.
func isStarted(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning {
		return false
	}
	return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.Name == containerSlurmctld && status.State.Running == nil
	})
}
