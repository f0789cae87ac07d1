package loginset

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// Names in the pod.
const (
	loginContainer = "login"
	initContainer  = "initconf"
	portName       = "ssh"

	configurationVolume = "sshd"
	preparedVolume      = "prepared"
	hostKeysVolume      = "host-keys"
	slurmKeyVolume      = "slurm-key"
	sssdVolume          = "sssd"
)

// Paths in the login container.
const (
	// configurationPath is where sshd's ConfigMap is mounted; changes of it become visible in running pods.
	configurationPath = "/etc/ssh/login"
	hostKeysPath      = "/etc/ssh/host_keys"
	slurmPath         = "/etc/slurm"
	sssdPath          = "/etc/sssd"
)

// Paths in the init container.
const (
	sourcePath   = "/source"
	preparedPath = "/prepared"
)

// loginCapabilities are the capabilities that sshd and the start of sackd need; docs/login.md explains each of them.
var loginCapabilities = []corev1.Capability{
	"AUDIT_WRITE", "CHOWN", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT",
}

// podTemplate returns the operator's part of the pod template.
//
// Every pod has the name of the headless Service as its hostname: slurmctld resolves the hostname of the client of srun
// while it holds its locks, so a slow DNS lookup would block the whole cluster.
func podTemplate(scope *scope, image, digest string) corev1.PodTemplateSpec {
	set := scope.set
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: naming.Labels(naming.Login, set.Name), Annotations: map[string]string{
				naming.AnnotationConfiguration: digest,
			},
		},
		Spec: corev1.PodSpec{
			Hostname:                     naming.LoginHosts(set.Name),
			EnableServiceLinks:           new(false),
			AutomountServiceAccountToken: new(false),
			InitContainers:               []corev1.Container{initconf(scope, image)},
			Containers:                   []corev1.Container{login(scope, image)},
			Volumes:                      volumes(scope),
		},
	}
}

// initconf copies files, with the owner and mode that sshd, sackd and sssd require, to a volume in memory. This avoids
// fsGroup, which would change the group of all files in the users' home directories to slurm.
func initconf(scope *scope, image string) corev1.Container {
	user, _ := clusterconf.User(scope.controller)
	script := []string{
		"cd " + preparedPath,
		"install --directory --mode=0755 ssh slurm",
		"install --mode=0600 --target-directory=ssh " + sourcePath + "/ssh/ssh_host_*_key",
		"install --mode=0400 --target-directory=slurm " + sourcePath + "/slurm/" + slinkyv1beta1.SlurmKeyFile,
		fmt.Sprintf("chown %d:%d slurm/%s", user.UID, user.GID, slinkyv1beta1.SlurmKeyFile),
	}
	mounts := []corev1.VolumeMount{
		{Name: preparedVolume, MountPath: preparedPath},
		{Name: hostKeysVolume, MountPath: sourcePath + "/ssh", ReadOnly: true},
		{Name: slurmKeyVolume, MountPath: sourcePath + "/slurm", ReadOnly: true},
	}
	if scope.set.Spec.SSSDConfRef != nil {
		script = append(script,
			"install --directory --mode=0755 sssd",
			"install --mode=0600 --target-directory=sssd "+sourcePath+"/sssd/sssd.conf")
		mounts = append(mounts, corev1.VolumeMount{Name: sssdVolume, MountPath: sourcePath + "/sssd", ReadOnly: true})
	}
	return corev1.Container{
		Name: initContainer, Image: image,
		Command:                  []string{"/bin/sh", "-euc", strings.Join(script, "\n")},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          securityContext("CHOWN"),
		VolumeMounts:             mounts,
	}
}

// login runs sshd, sackd and, if configured, sssd.
func login(scope *scope, image string) corev1.Container {
	user, _ := clusterconf.User(scope.controller)
	mounts := []corev1.VolumeMount{
		{Name: configurationVolume, MountPath: "/etc/ssh/sshd_config", SubPath: sshdConfigFile, ReadOnly: true},
		{Name: configurationVolume, MountPath: configurationPath, ReadOnly: true},
		{Name: preparedVolume, MountPath: hostKeysPath, SubPath: "ssh", ReadOnly: true},
		{Name: preparedVolume, MountPath: slurmPath, SubPath: "slurm", ReadOnly: true},
	}
	if scope.set.Spec.SSSDConfRef != nil {
		mounts = append(mounts, corev1.VolumeMount{
			Name: preparedVolume, MountPath: sssdPath, SubPath: "sssd", ReadOnly: true,
		})
	}
	return corev1.Container{
		Name: loginContainer, Image: image,
		// The entrypoint of an image may do anything. bash also does what a container's first process must do.
		Command: []string{"/bin/bash", configurationPath + "/" + startFile},
		Args:    []string{"--conf-server", strings.Join(naming.ControllerEndpoints(scope.controller), ",")},
		Env: []corev1.EnvVar{
			{Name: "SACKD_USER", Value: strconv.FormatInt(user.UID, 10)},
			{Name: "SACKD_GROUP", Value: strconv.FormatInt(user.GID, 10)},
		},
		Ports: []corev1.ContainerPort{{Name: portName, ContainerPort: naming.PortSSH, Protocol: corev1.ProtocolTCP}},
		// The container terminates with sshd, so this probes sackd, whose socket exists while it runs. A probe that
		// connects to sshd would fill its log.
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{
				Exec: &corev1.ExecAction{Command: []string{"test", "-S", "/run/slurm/sack.socket"}},
			},
			PeriodSeconds: 5,
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          securityContext(loginCapabilities...),
		VolumeMounts:             mounts,
	}
}

// securityContext returns that of a container that runs as root with only the given capabilities.
func securityContext(capabilities ...corev1.Capability) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: capabilities},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func volumes(scope *scope) []corev1.Volume {
	set := scope.set
	volumes := []corev1.Volume{
		{Name: configurationVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: naming.LoginConfiguration(set.Name)},
		}}},
		{
			Name: preparedVolume,
			VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
			},
		},
		secretVolume(hostKeysVolume, naming.LoginHostKeys(set.Name)),
	}
	key := scope.slurmKeyRef()
	volumes = append(volumes, secretVolume(slurmKeyVolume, key.Name, corev1.KeyToPath{
		Key: key.Key, Path: slinkyv1beta1.SlurmKeyFile,
	}))
	if ref := set.Spec.SSSDConfRef; ref != nil {
		volumes = append(volumes, secretVolume(sssdVolume, ref.Name, corev1.KeyToPath{Key: ref.Key, Path: "sssd.conf"}))
	}
	return volumes
}

// secretVolume returns a volume with a Secret, or some of its keys, readable only by root.
func secretVolume(volume, secret string, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(int32(0o400)), Items: items},
	}}
}
