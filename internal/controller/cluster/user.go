package cluster

import (
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
)

// slurmUser returns the user that slurmctld runs as. Without one in the spec, it is the user slurm of the image with
// which the cluster was created: a first validation run finds it, and the next one runs as that user. It does not
// change with another image, because daemons of the old and the new one would not trust each other.
func (s *scope) slurmUser() slinkyv1beta1.SlurmUser {
	if user, given := clusterconf.GivenUser(s.controller.Spec.SlurmUser); given {
		return user
	}
	if user := s.foreignUser(); user != nil {
		return *user
	}
	if found := s.foundUser(); found != nil && (s.promoted == nil || s.promoted.foreign) {
		return *found
	}
	if user, known := clusterconf.User(s.controller); known || s.promoted == nil || s.promoted.user == nil {
		return user
	}
	return *s.promoted.user
}

// foundUser returns the user that a validation run has found in the image; nil if none has. A run that has not ended
// keeps the user with which it was started, if an earlier one has found that user.
func (s *scope) foundUser() *slinkyv1beta1.SlurmUser {
	if s.validation == nil || s.validation.Annotations[annotationImage] != s.image {
		return nil
	}
	report, done := reportOf(s.validation)
	if !done {
		user := clusterconf.ParseUser(s.validation.Annotations[annotationUser])
		if user != nil && *user == clusterconf.DefaultUser {
			return nil // nothing has found it
		}
		return user
	}
	if report.SlurmUser == nil {
		return nil
	}
	return &slinkyv1beta1.SlurmUser{UID: report.SlurmUser.UID, GID: report.SlurmUser.GID}
}

// reportedUser returns the user for the status; nil while it is not known.
func (s *scope) reportedUser() *slinkyv1beta1.SlurmUser {
	if s.isForeign() {
		return nil
	}
	user := s.slurmUser()
	if _, known := clusterconf.User(s.controller); known || s.promoted != nil || s.foundUser() != nil {
		return &user
	}
	return nil
}

// runsAs reports whether a validation run has a user.
func runsAs(run *corev1.Pod, user slinkyv1beta1.SlurmUser) bool {
	security := run.Spec.SecurityContext
	return security != nil && security.RunAsUser != nil && *security.RunAsUser == user.UID
}
