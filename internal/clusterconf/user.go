package clusterconf

import (
	"cmp"
	"fmt"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// DefaultUser is the user slurm of the operator's images.
var DefaultUser = slinkyv1beta1.SlurmUser{UID: 64030, GID: 64030}

// GivenUser returns the user of a spec, and whether it has one.
func GivenUser(spec slinkyv1beta1.SlurmUser) (slinkyv1beta1.SlurmUser, bool) {
	spec.GID = cmp.Or(spec.GID, spec.UID)
	return spec, spec.UID != 0
}

// User returns the user that the daemons of a cluster run as, and whether that is known: without one in the spec, it is
// found in the image of slurmctld.
func User(controller *slinkyv1beta1.Controller) (slinkyv1beta1.SlurmUser, bool) {
	if user, given := GivenUser(controller.Spec.SlurmUser); given {
		return user, true
	}
	if found := controller.Status.SlurmUser; found != nil {
		return *found, true
	}
	return DefaultUser, controller.Spec.External
}

// RequiredUID returns the ID that the user slurm of a cluster's images must have; 0 if any may do, because slurmctld
// runs elsewhere and the spec does not say as which user.
func RequiredUID(controller *slinkyv1beta1.Controller) int64 {
	if _, given := GivenUser(controller.Spec.SlurmUser); controller.Spec.External && !given {
		return 0
	}
	user, _ := User(controller)
	return user.UID
}

// FormatUser returns the IDs of a user and its group as text.
func FormatUser(user slinkyv1beta1.SlurmUser) string { return fmt.Sprintf("%d:%d", user.UID, user.GID) }

// ParseUser reads what FormatUser returns; nil if there is nothing, or if it is root, as whom no daemon may run.
func ParseUser(text string) *slinkyv1beta1.SlurmUser {
	user := &slinkyv1beta1.SlurmUser{}
	if _, err := fmt.Sscanf(text, "%d:%d", &user.UID, &user.GID); err != nil || user.UID <= 0 {
		return nil
	}
	return user
}
