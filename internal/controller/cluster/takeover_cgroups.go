package cluster

import (
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// slurmctld sends its cgroup.conf to all slurmds at once, and a slurmd that cannot work with it exits, with all its
// jobs. So a cluster that is taken over, and whose jobs are confined, keeps the cgroup.conf of the other operator, and
// the settings that go with it, until all its slurmd pods are this operator's.

// cgroupSettings are the settings of slurm.conf that go with cgroup.conf.
var cgroupSettings = []string{"ProctrackType", "TaskPlugin", "JobAcctGatherType"}

// hasForeignCgroups reports whether the configuration in force has a cgroup.conf of another operator that enables
// cgroups.
func (s *scope) hasForeignCgroups() bool {
	return s.promoted != nil && clusterconf.IsConfined(s.inForce()) && s.managesCgroups() &&
		!clusterconf.IsOwnCgroupConf(s.promoted.files[clusterconf.CgroupFile])
}

// keepsForeignCgroups reports whether that cgroup.conf must be kept.
func (s *scope) keepsForeignCgroups() bool {
	return s.hasForeignCgroups() && (s.promoted.foreign || s.foreignSlurmds > 0)
}

// keepForeignCgroups gives a configuration the cgroup.conf in force and the settings that go with it.
func keepForeignCgroups(inForce *promoted, document slurmconf.Document, files clusterconf.Files) slurmconf.Document {
	if content, found := inForce.files[clusterconf.CgroupFile]; found {
		files[clusterconf.CgroupFile] = content
	} else {
		delete(files, clusterconf.CgroupFile)
	}
	was := inForce.document()
	for _, key := range cgroupSettings {
		if value, found := was.Get(key); found {
			document.Set(key, value)
		} else {
			document = document.Without(key)
		}
	}
	return document
}

// foreignDocument returns the slurm.conf of another operator, which has no records of elastic nodes. Slurm tracks
// processes by cgroups unless slurm.conf or cgroup.conf says otherwise.
func (p *promoted) foreignDocument() slurmconf.Document {
	document := slurmconf.Written(p.files[slurmconf.FileName])
	cgroups := slurmconf.Written(p.files[clusterconf.CgroupFile])
	plugin, _ := cgroups.Get("CgroupPlugin")
	if _, found := document.Get("ProctrackType"); !found && !strings.EqualFold(plugin, "disabled") {
		document.Set("ProctrackType", "proctrack/cgroup")
	}
	return document
}
