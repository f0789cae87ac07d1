package podtemplate

import (
	"path"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

const helperVolume = "helper"

// HelperContainer returns the init container that copies the operator's program out of the operator's image, and gives
// it further names.
func HelperContainer(name, image string, names ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, Args: append([]string{"install", naming.HelperPath}, names...),
		SecurityContext: Locked(),
		VolumeMounts:    []corev1.VolumeMount{{Name: helperVolume, MountPath: path.Dir(naming.HelperPath)}},
	}
}

// Start returns the command of a container that runs a program of a Slurm image, whatever the image's entrypoint. The
// program does not start unless the image's user slurm has an ID, if it is not 0. Further options are those of the
// helper's command start.
func Start(slurmUser int64, options ...string) []string {
	command := append([]string{naming.HelperPath, "start"}, options...)
	if slurmUser != 0 {
		command = append(command, "--slurm-user="+strconv.FormatInt(slurmUser, 10))
	}
	return append(command, "--")
}

// HelperMount returns the mount for containers that run the program.
func HelperMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: helperVolume, MountPath: path.Dir(naming.HelperPath), ReadOnly: true}
}

// HelperVolume returns the volume that holds the program.
func HelperVolume() corev1.Volume {
	return corev1.Volume{
		Name: helperVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	}
}

// AnnotationCgroupConf holds a slurmd pod's own cgroup.conf, which is mounted as a file.
const AnnotationCgroupConf = "nodeset." + slinkyv1beta1.GroupName + "/cgroup-conf"

// HasCgroupConf reports whether a slurmd pod has its own cgroup.conf.
func HasCgroupConf(pod *corev1.Pod) bool { return pod.Annotations[AnnotationCgroupConf] != "" }

// IsConfinable reports whether a slurmd pod is prepared to confine jobs.
func IsConfinable(pod *corev1.Pod) bool {
	return HasCgroupConf(pod) && pod.Annotations[AnnotationCgroupConf] != slurmconf.CgroupsDisabled
}
