package slurmconf

const (
	// CgroupFile is the name of the cgroup configuration that slurmctld sends to every slurmd.
	CgroupFile = "cgroup.conf"
	// PodCgroupFile is the name, in Directory, of the cgroup configuration of one pod.
	PodCgroupFile = "cgroup-pod.conf"
	// IncludePodCgroup is a CgroupFile that lets each pod have its own, for as long as it exists. A slurmstepd reads the
	// file when it starts, and fails if its slurmd started with another one.
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
