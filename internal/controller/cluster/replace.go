package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// replaceable is the next pod to be replaced by one of the present template, where there are several slurmctlds. A standby
// goes before the active one, and none goes unless all the others run, so that there is always one to take over.
func replaceable(scope *scope) *corev1.Pod {
	set := scope.statefulSet
	if !scope.controller.Spec.HA.Enabled || set == nil || set.Status.ObservedGeneration != set.Generation || set.Status.UpdateRevision == "" {
		return nil
	}
	if len(scope.pods) != len(naming.ControllerPods(scope.controller)) {
		return nil
	}
	var standby, active *corev1.Pod
	for i := range scope.pods {
		pod := &scope.pods[i]
		// An agent that answers proves that the pod has come up.
		if _, answers := scope.agents[pod.Name]; !answers || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			return nil
		}
		switch {
		case pod.Labels[appsv1.ControllerRevisionHashLabelKey] == set.Status.UpdateRevision:
		case isReady(pod):
			active = pod
		default:
			standby = pod
		}
	}
	if standby != nil {
		return standby
	}
	return active
}
