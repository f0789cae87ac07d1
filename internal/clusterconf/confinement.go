package clusterconf

import (
	"cmp"
	"slices"
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// The settings that confine jobs are the same for all slurmds of a cluster, which get them from slurmctld at once. A
// slurmd whose pod does not have writable cgroups exits because of them, with all its jobs. So pods are prepared before
// the settings are in force, and stay prepared as long as they are: a prepared pod runs with either settings. Whether
// slurmd uses cgroups at all never changes while its pod exists.

const processTracking, byCgroups = "ProctrackType", "proctrack/cgroup"

// IsConfined reports whether a slurm.conf confines jobs.
func IsConfined(document slurmconf.Document) bool {
	value, _ := document.Get(processTracking)
	return strings.EqualFold(value, byCgroups)
}

// Contains reports whether each job has a step for processes from outside: sshd and confinement need it, and it stays
// once it is in force, because adding or removing it costs running jobs.
func Contains(sets []slinkyv1beta1.NodeSet, inForce slurmconf.Document) bool {
	return IsConfined(inForce) || slurmconf.HasExternStep(inForce) ||
		slices.ContainsFunc(sets, func(set slinkyv1beta1.NodeSet) bool { return set.Spec.SSH.Enabled })
}

// IsOwnCgroupConf reports whether the content of a cgroup.conf is one that the operator writes.
func IsOwnCgroupConf(content string) bool {
	return slices.Contains([]string{
		slurmconf.IncludePodCgroup, slurmconf.CgroupsEnabled, slurmconf.CgroupsDisabled,
	}, content)
}

// PreparesPods reports whether the slurmd pods of a cluster are prepared for confinement, and whether that is known:
// the status says so, because pods follow the configuration.
func PreparesPods(controller *slinkyv1beta1.Controller) (prepares, known bool) {
	mode := controller.Status.JobConfinement
	if controller.Spec.External {
		mode = cmp.Or(controller.Spec.JobConfinement, slinkyv1beta1.JobConfinementNone)
	}
	return mode == slinkyv1beta1.JobConfinementCgroups, mode != ""
}

// ConfiguresCgroups reports whether an administrator has chosen how Slurm uses cgroups: with a cgroup.conf, or in the
// lines that are added to slurm.conf.
func ConfiguresCgroups(extraConf string, files []File) bool {
	written := slurmconf.Written(extraConf)
	_, found := written.Get(processTracking)
	return found || slices.ContainsFunc(files, func(file File) bool { return file.Name == CgroupFile })
}
