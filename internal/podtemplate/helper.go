package podtemplate

import (
	"path"

	corev1 "k8s.io/api/core/v1"
)

// HelperPath is the path of the operator's own program in Slurm's pods, where an init container installs it.
const HelperPath = "/opt/slurm-operator/slurm-operator"

const helperVolume = "helper"

// HelperContainer returns the init container that copies the operator's program out of the operator's image.
func HelperContainer(name, image string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, Args: []string{"install", HelperPath},
		SecurityContext: Locked(),
		VolumeMounts:    []corev1.VolumeMount{{Name: helperVolume, MountPath: path.Dir(HelperPath)}},
	}
}

// HelperMount returns the mount for containers that run the program.
func HelperMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: helperVolume, MountPath: path.Dir(HelperPath), ReadOnly: true}
}

// HelperVolume returns the volume that holds the program.
func HelperVolume() corev1.Volume {
	return corev1.Volume{
		Name: helperVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	}
}
