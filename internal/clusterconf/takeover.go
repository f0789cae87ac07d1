package clusterconf

import slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"

// AsksForTakeOver reports whether the user lets the operator take over a cluster that another operator made.
func AsksForTakeOver(controller *slinkyv1beta1.Controller) bool {
	value := controller.Annotations[slinkyv1beta1.AnnotationTakeOver]
	return value == "true" || value == slinkyv1beta1.TakeOverConfined
}

// MayTakeOver reports whether the pods of a cluster that another operator made may be taken over, because this operator
// runs its slurmctld.
func MayTakeOver(controller *slinkyv1beta1.Controller) bool {
	return AsksForTakeOver(controller) && controller.Status.SlurmUser != nil
}
