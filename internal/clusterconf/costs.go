package clusterconf

import (
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// DespiteJobs returns the keys of slurm.conf that an administrator lets change while jobs run.
func DespiteJobs(controller *slinkyv1beta1.Controller) []string {
	return strings.FieldsFunc(controller.Annotations[slinkyv1beta1.AnnotationChangeDespiteJobs],
		func(r rune) bool { return r == ',' || r == ' ' })
}

// KeepsState reports whether the slurmctld that starts after a change has the state of the one that runs: if it starts
// from the same PVC. Otherwise its pod is replaced only when no job runs.
func KeepsState(before, after *slinkyv1beta1.Controller) bool {
	claim := naming.StateClaim(after)
	return claim != "" && claim == naming.StateClaim(before)
}
