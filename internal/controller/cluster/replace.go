package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
)

// replaceable is the next pod to be replaced by one of the present template. Where there are several slurmctlds, a standby goes
// before the active one, and none goes unless all the others run, so that there is always one to take over.
func replaceable(scope *scope) *corev1.Pod {
	if len(scope.pods) != len(naming.ControllerPods(scope.controller)) {
		return nil
	}
	if pod := &scope.pods[0]; !scope.controller.Spec.HA.Enabled {
		if pod.DeletionTimestamp != nil || !podtemplate.Outdated(pod, scope.statefulSet) {
			return nil
		}
		return pod
	}
	var standby, active *corev1.Pod
	for i := range scope.pods {
		pod := &scope.pods[i]
		// An agent that answers proves that the pod has come up.
		if _, answers := scope.agents[pod.Name]; !answers || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			return nil
		}
		switch {
		case !podtemplate.Outdated(pod, scope.statefulSet):
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
