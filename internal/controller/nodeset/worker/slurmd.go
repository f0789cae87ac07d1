package worker

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmd"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Writable directories in the container. The root filesystem is read-only.
const (
	runDirectory    = "/run/slurm"
	logDirectory    = "/var/log/slurm"
	deviceDirectory = clusterconf.DeviceDirectory
	cpuFile         = runDirectory + "/cpus.xml"
)

// capabilities are what slurmd needs to run and terminate jobs of other users; docs/nodesets.md explains each.
var capabilities = []corev1.Capability{"CHOWN", "KILL", "SETGID", "SETUID"}

// fixModes gives shared directories the modes that they have on any host: with the mode of a volume, all users could
// delete each other's files. slurmd sets the modes of its own directories itself.
const fixModes = "chmod 1777 /tmp /dev/shm\nchmod 0755 " + logDirectory + "\n"

// forgetCPUs removes what slurmd wrote about the CPUs before a restart of the container: slurmd 24.11 would use it,
// and the container may have others now.
const forgetCPUs = "rm -f " + slurmconf.SlurmdSpoolDir + "/hwloc_topo_*.xml\n"

// execSlurmd replaces the shell by slurmd. On a reconfigure, slurmd executes itself again, which needs a path.
const execSlurmd = `exec "$(command -v slurmd)" "$@"`

// execConfinedSlurmd does so with the operator's program in between, also on a reconfigure, in the releases that need
// it; see package inpod/slurmd. Users must not be able to change what it executes.
const execConfinedSlurmd = "chmod 0755 " + runDirectory + `
case "$(slurmd -V)" in
"slurm 24."* | "slurm 25."*)
  echo "$$ $(command -v slurmd)" >` + slurmd.Record + `
  exec ` + naming.SlurmdPath + ` "$@" ;;
esac
` + execSlurmd

// helperContainer is the name of the init container that installs the operator's helper.
const helperContainer = "install-helper"

// listenProbe succeeds when slurmd's port is open. It does not connect, because slurmd would log every connection as an
// error.
var listenProbe = []string{"grep", "-qs", ":1AA2 0*:0000 0A", "/proc/net/tcp", "/proc/net/tcp6"}

// slurmdContainer returns slurmd's container.
func slurmdContainer(set Set, node nodeconf.Node) corev1.Container {
	script := fixModes + forgetCPUs + node.DeviceScript(deviceDirectory) + startSSH(set.NodeSet.Spec.SSH)
	if set.Confined {
		script += execConfinedSlurmd
	} else {
		script += execSlurmd
	}
	args := append([]string{"/bin/sh", "-c", script, "slurmd"}, slurmdArgs(set, node)...)
	for i := range args {
		args[i] = escape(args[i])
	}
	args = append(args, instanceArgs(set.NodeSet)...)
	args = append(args, nodeNameArgs...)
	security := podtemplate.Locked()
	security.Capabilities.Add = slices.Clone(capabilities)
	security.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	container := corev1.Container{
		Name: nodeconf.Container, Image: set.Images.For(naming.Slurmd),
		Command: podtemplate.Start(set.SlurmUser, "--cpu-file="+cpuFile, "--cpus="+strconv.Itoa(node.CPUs())), Args: args,
		Env: []corev1.EnvVar{
			variable(nodeNameEnv, "metadata.labels['"+slinkyv1beta1.LabelPodHostname+"']"),
			variable(podEnv, "metadata.name"), variable(hostEnv, "spec.nodeName"),
		},
		Ports: []corev1.ContainerPort{
			{Name: nodeconf.Container, ContainerPort: naming.PortSlurmd, Protocol: corev1.ProtocolTCP},
		},
		// slurmd may have to wait an hour for slurmctld. A restart loses no jobs: a slurmd that does not listen has none.
		StartupProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: listenProbe}},
			PeriodSeconds: 2, TimeoutSeconds: 5, FailureThreshold: 1800,
		},
		SecurityContext:          security,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: []corev1.VolumeMount{
			{Name: "etc", MountPath: slurmconf.Directory, ReadOnly: true},
			{Name: "run", MountPath: runDirectory},
			{Name: "spool", MountPath: slurmconf.SlurmdSpoolDir},
			{Name: "log", MountPath: logDirectory},
			{Name: "tmp", MountPath: "/tmp"},
			{Name: "shm", MountPath: "/dev/shm"},
			podtemplate.HelperMount(),
		},
	}
	if set.Confined {
		confine(&container, set.NodeSet.Spec.CgroupAccess)
	}
	return container
}

// Environment variables with the names of the pod's Slurm node, of the pod, and of its Kubernetes node.
const (
	nodeNameEnv = "SLURM_OPERATOR_NODE"
	podEnv      = "SLURM_OPERATOR_POD"
	hostEnv     = "SLURM_OPERATOR_KUBERNETES_NODE"
)

// nodeNameArgs set the name of the Slurm node. The default is the host name, which with hostNetwork is that of the
// Kubernetes node: Slurm would run jobs on a Slurm node that the operator does not know.
var nodeNameArgs = []string{"-N", "$(" + nodeNameEnv + ")"}

// instanceArgs make slurmd bring the name of its pod when it registers, as the instance ID of the Slurm node. A user's
// own --instance-id takes precedence, because it is a later argument.
func instanceArgs(set *slinkyv1beta1.NodeSet) []string {
	pod := slurm.Owner{Namespace: set.Namespace, PodName: "$(" + podEnv + ")", Node: "$(" + hostEnv + ")"}
	return []string{"--instance-id", pod.String()}
}

// variable reads an environment variable from a field of the pod, so that all pods have the same template.
func variable(name, field string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: field},
	}}
}

// escape keeps Kubernetes from expanding $(NAME) in an argument.
func escape(argument string) string { return strings.ReplaceAll(argument, "$", "$$") }

// fileOf returns a file with the value of an annotation.
func fileOf(name, annotation string) corev1.DownwardAPIVolumeFile {
	return corev1.DownwardAPIVolumeFile{
		Path: name, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + annotation + "']"},
	}
}

// volumes returns the volumes of every slurmd pod. The size of /dev/shm is the pod's memory limit, or the memory of the
// Kubernetes node without one. The container runtime's default of 64 MiB is too small for jobs that use shared memory.
func volumes(key slinkyv1beta1.SecretKeyReference) []corev1.Volume {
	emptyDir := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	return []corev1.Volume{
		{Name: "etc",
			VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{Secret: &corev1.SecretProjection{
						LocalObjectReference: corev1.LocalObjectReference{Name: key.Name},
						Items: []corev1.KeyToPath{
							{Key: key.Key, Path: slinkyv1beta1.SlurmKeyFile, Mode: new(int32(0o400))},
						},
					}},
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
						fileOf(slurmconf.PodGresFile, annotationGres),
						fileOf(slurmconf.PodCgroupFile, podtemplate.AnnotationCgroupConf),
					}}},
				}}}},
		{Name: "run", VolumeSource: emptyDir},
		{Name: "spool", VolumeSource: emptyDir},
		{Name: "log", VolumeSource: emptyDir},
		{Name: "tmp", VolumeSource: emptyDir},
		{
			Name: "shm",
			VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
			},
		},
	}
}
