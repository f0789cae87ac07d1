package worker

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Directories in the container that are written to. The root filesystem is not.
const (
	runDirectory    = "/run/slurm"
	logDirectory    = "/var/log/slurm"
	deviceDirectory = runDirectory + "/devices"
)

// capabilities are what slurmd needs to run jobs of other users and to end them; docs/nodesets.md says what each is
// for.
var capabilities = []corev1.Capability{"CHOWN", "KILL", "SETGID", "SETUID"}

// openDirectories gives directories that all users write to the mode that they have on every Kubernetes node: in a
// volume, anybody could remove anybody's files. slurmd sees to its own directories itself.
const openDirectories = "chmod 1777 /tmp /dev/shm\nchmod 0755 " + logDirectory + "\n"

// listening succeeds when something listens on slurmd's port, without connecting to it: slurmd would log every such
// connection as an error.
var listening = []string{"grep", "-qs", ":1AA2 0*:0000 0A", "/proc/net/tcp", "/proc/net/tcp6"}

// slurmd is the container.
func slurmd(set Set, node nodeconf.Node) corev1.Container {
	script := openDirectories + node.DeviceScript(deviceDirectory) + startSSH(set.NodeSet.Spec.SSH) + `exec "$@"`
	args := append([]string{"/bin/sh", "-c", script, "slurmd"}, command(set, node)...)
	for i := range args {
		args[i] = literal(args[i])
	}
	args = append(args, nodeNameArgs...)
	security := podtemplate.Locked()
	security.Capabilities.Add = slices.Clone(capabilities)
	security.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	return corev1.Container{
		Name: nodeconf.Container, Image: set.Images.For(naming.Slurmd), Args: args,
		Env: []corev1.EnvVar{nodeNameVariable()},
		Ports: []corev1.ContainerPort{
			{Name: nodeconf.Container, ContainerPort: naming.PortSlurmd, Protocol: corev1.ProtocolTCP},
		},
		// slurmd may wait for slurmctld as long as it takes. A slurmd that does not listen has no jobs to lose.
		StartupProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: listening}},
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
		},
	}
}

// nodeNameEnv is the variable that holds the name of the pod's Slurm node.
const nodeNameEnv = "SLURM_OPERATOR_NODE"

// nodeNameArgs tell slurmd the name of its node. It would take the host name otherwise, which with hostNetwork is the
// one of the Kubernetes node: Slurm would have another node than the operator looks for, and give it jobs.
var nodeNameArgs = []string{"-N", "$(" + nodeNameEnv + ")"}

// nodeNameVariable takes the name from the pod's label, so that one template serves all pods.
func nodeNameVariable() corev1.EnvVar {
	return corev1.EnvVar{Name: nodeNameEnv, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: "metadata.labels['" + slinkyv1beta1.LabelPodHostname + "']",
		},
	}}
}

// literal protects a text from Kubernetes, which replaces $(NAME) in arguments by a variable.
func literal(argument string) string { return strings.ReplaceAll(argument, "$", "$$") }

// volumes are of every slurmd pod. The volume for shared memory is as large as the pod's memory limit, or the node's
// memory without one; a runtime's own has 64 MiB, which is not enough for jobs that exchange data that way.
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
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
						Path: slurmconf.PodGresFile, FieldRef: &corev1.ObjectFieldSelector{
							FieldPath: "metadata.annotations['" + annotationGres + "']",
						},
					}}}},
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
