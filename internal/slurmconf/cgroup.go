package slurmconf

const (
	// CgroupFile is the name of the cgroup configuration that slurmctld sends to every slurmd.
	CgroupFile = "cgroup.conf"
	// PodCgroupFile is the name, in Directory, of the cgroup configuration of one pod.
	PodCgroupFile = "cgroup-pod.conf"
	// IncludePodCgroup is a CgroupFile that leaves the choice to each pod. A slurmstepd reads the file when it starts, and
	// fails if cgroups are enabled in it and were disabled when its slurmd started.
	IncludePodCgroup = include + " " + Directory + "/" + PodCgroupFile + "\n"
	// CgroupsDisabled is a PodCgroupFile that lets slurmd run without writable cgroups.
	CgroupsDisabled = "CgroupPlugin=disabled\n"
	// CgroupsEnabled is a PodCgroupFile that uses the cgroups of slurmd's container, in which there is no systemd.
	CgroupsEnabled = `CgroupPlugin=autodetect
IgnoreSystemd=yes
EnableControllers=yes
ConstrainCores=yes
ConstrainDevices=yes
ConstrainRAMSpace=yes
ConstrainSwapSpace=yes
`
)
