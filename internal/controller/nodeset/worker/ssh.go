package worker

import (
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/sshd"
)

// sshd runs in slurmd's container: a session needs the files and devices of the jobs, and slurmd can only adopt
// processes of its own PID namespace. It does not affect the container's lifetime: sshd is restarted whenever it exits,
// without an effect on jobs.

// annotationSSHD holds a pod's sshd_config, which is mounted as a file.
const annotationSSHD = "nodeset." + slinkyv1beta1.GroupName + "/sshd-config"

// Directories of sshd. Mounted files are copied, because sshd and sssd check the owner and mode of their files.
const (
	sshMounted   = "/etc/ssh/nodeset"
	sshDirectory = "/run/sshd"
)

// sshCapabilities are what sshd needs in addition to slurmd; docs/login.md explains each.
var sshCapabilities = []corev1.Capability{"AUDIT_WRITE", "NET_BIND_SERVICE", "SYS_CHROOT"}

const sshScript = `chmod 0755 ` + sshDirectory + `
install --mode=0600 --target-directory=` + sshDirectory + ` ` + sshMounted + `/ssh_host_*_key
for key in ` + sshDirectory + `/ssh_host_*_key; do keys="$keys -h $key"; done
(while sleep 1; do /usr/sbin/sshd -D -e -f ` + sshMounted + `/sshd_config $keys; done &)
`

const sssdScript = `install --mode=0600 ` + sshMounted + `/sssd.conf /etc/sssd/sssd.conf
(while sleep 1; do sssd --interactive --logger=stderr; done &)
`

// startSSH returns the part of the container's script that starts sshd; empty if SSH is disabled.
func startSSH(ssh slinkyv1beta1.NodeSetSSH) string {
	switch {
	case !ssh.Enabled:
		return ""
	case ssh.SSSDConfRef == nil:
		return sshScript
	default:
		return sssdScript + sshScript
	}
}

// addSSH adds sshd to the operator's template, if SSH is enabled.
func addSSH(template *corev1.PodTemplateSpec, nodeSet *slinkyv1beta1.NodeSet) {
	ssh := nodeSet.Spec.SSH
	if !ssh.Enabled {
		return
	}
	config := sshd.NewConfig("spec.ssh.extraSshdConfig", ssh.ExtraSshdConfig)
	config.Section("From the image.", "Include /etc/ssh/sshd_config.d/*.conf")
	config.Common()
	template.Annotations[annotationSSHD] = config.String()
	files := []corev1.VolumeProjection{
		{
			Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: naming.NodeSetHostKeys(nodeSet.Name)},
			},
		},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
			Path: "sshd_config", FieldRef: &corev1.ObjectFieldSelector{
				FieldPath: "metadata.annotations['" + annotationSSHD + "']",
			},
		}}}},
	}
	slurmd := &template.Spec.Containers[0]
	if ref := ssh.SSSDConfRef; ref != nil {
		files = append(files, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name}, Items: []corev1.KeyToPath{
				{Key: ref.Key, Path: "sssd.conf"},
			},
		}})
		slurmd.SecurityContext.ReadOnlyRootFilesystem = new(false) // sssd writes caches to many directories
	}
	template.Spec.Volumes = append(template.Spec.Volumes,
		corev1.Volume{
			Name: "ssh",
			VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(0o400)), Sources: files},
			},
		},
		corev1.Volume{Name: "run-sshd",
			VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}})
	slurmd.VolumeMounts = append(slurmd.VolumeMounts,
		corev1.VolumeMount{Name: "ssh", MountPath: sshMounted, ReadOnly: true}, corev1.VolumeMount{Name: "run-sshd",
			MountPath: sshDirectory})
	slurmd.Ports = append(slurmd.Ports, corev1.ContainerPort{
		Name: "ssh", ContainerPort: naming.PortSSH, Protocol: corev1.ProtocolTCP,
	})
	if capabilities := slurmd.SecurityContext.Capabilities; capabilities != nil { // a privileged container has all
		capabilities.Add = append(capabilities.Add, sshCapabilities...)
	}
}
