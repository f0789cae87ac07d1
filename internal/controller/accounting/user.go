package accounting

import (
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
)

// slurmUser returns the user that slurmdbd runs as. Without one in the spec, it is the user slurm of the image: a first
// pod that runs as another one reports it.
func (s *scope) slurmUser() slinkyv1beta1.SlurmUser {
	if user, given := clusterconf.GivenUser(s.accounting.Spec.SlurmUser); given {
		return user
	}
	if user, found := foundUser(s.pods); found {
		return user
	}
	if recorded := s.accounting.Status.SlurmUser; recorded != nil {
		return *recorded
	}
	return clusterconf.DefaultUser
}

// foundUser returns the user that a pod has found in its image.
func foundUser(pods []corev1.Pod) (user slinkyv1beta1.SlurmUser, found bool) {
	for i := range pods {
		for _, container := range pods[i].Status.InitContainerStatuses {
			for _, state := range []corev1.ContainerState{container.State, container.LastTerminationState} {
				if container.Name != configurationName || state.Terminated == nil {
					continue
				}
				if found := clusterconf.ParseUser(state.Terminated.Message); found != nil {
					return *found, true
				}
			}
		}
	}
	return slinkyv1beta1.SlurmUser{}, false
}
