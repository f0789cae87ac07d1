package accounting

import (
	"math"
	"path"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/applyconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

const (
	// helperName is the name of the container that installs the operator's helper.
	helperName = "helper"
	// configurationName is the name of the container that copies the files.
	configurationName = "configuration"
	// portName is the name of slurmdbd's port.
	portName = "slurmdbd"
	// terminationLog is the file with a container's termination message.
	terminationLog = corev1.TerminationMessagePathDefault
	// mountedDirectory is where Kubernetes mounts the files.
	mountedDirectory = "/run/configuration"
)

// children are the objects that an Accounting owns.
type children struct {
	secret      *applycorev1.SecretApplyConfiguration
	service     *applycorev1.ServiceApplyConfiguration
	statefulSet *applyappsv1.StatefulSetApplyConfiguration
	// image is that of slurmdbd.
	image string
}

// build builds all children. Its errors are shown to the user.
func build(scope *scope, configuration configuration) (children, error) {
	accounting := scope.accounting
	name, labels := naming.Accounting(accounting.Name), naming.Labels(naming.Slurmdbd, accounting.Name)
	selector := naming.Selector(naming.Slurmdbd, accounting.Name)
	template, err := podTemplate(scope, configuration.digest)
	if err != nil {
		return children{}, err
	}
	configured, err := applyconf.PodTemplate(template)
	if err != nil {
		return children{}, err
	}
	service, err := applyconf.Service{
		Name: name, Namespace: accounting.Namespace, Labels: labels, Selector: selector,
		Port: accounting.Spec.Service.Port, PortName: portName,
	}.Merge(accounting.Spec.Service.ServiceTemplate)
	if err != nil {
		return children{}, err
	}
	return children{
		secret:  applycorev1.Secret(name, accounting.Namespace).WithLabels(labels).WithData(configuration.files),
		service: service,
		image:   containerOf(&template.Spec).Image,
		statefulSet: applyappsv1.StatefulSet(name, accounting.Namespace).
			WithLabels(naming.Merge(accounting.Spec.Template.Metadata.Labels, labels)).
			WithAnnotations(naming.MergeAnnotations(accounting.Spec.Template.Metadata.Annotations,
				map[string]string{annotationRelease: scope.releaseToRecord()})).
			WithSpec(applyappsv1.StatefulSetSpec().
				WithReplicas(1).
				WithServiceName(name).
				WithPodManagementPolicy(appsv1.ParallelPodManagement).
				// The operator replaces the pod itself: not for a new helper image, but also if it never became ready, for
				// example because of a wrong password.
				WithUpdateStrategy(applyappsv1.StatefulSetUpdateStrategy().
					WithType(appsv1.OnDeleteStatefulSetStrategyType)).
				WithSelector(applymetav1.LabelSelector().WithMatchLabels(selector)).
				WithTemplate(configured)),
	}, nil
}

const (
	// terminationGraceSeconds is how long a pod may take to terminate. It is for slurmdbds that convert their database:
	// that takes hours if the database is large, and what was converted would be lost if slurmdbd was killed. A day is
	// more than conversions take, and ends a wait that never would.
	terminationGraceSeconds = 24 * 60 * 60
	// exitTimeout is how long slurmdbd may take to exit if it converts nothing: Kubernetes' default grace period.
	exitTimeout = 30 * time.Second
)

// exitOption is the helper's option that limits how long slurmdbd may take to exit.
const exitOption = "--exit-timeout="

// limitTermination gives slurmdbd time to terminate, unless the user did. Without the helper, nothing keeps SIGTERM
// back, and only other containers would use the time.
func limitTermination(spec *corev1.PodSpec) {
	if spec.TerminationGracePeriodSeconds != nil {
		return
	}
	for i := range spec.Containers {
		container := &spec.Containers[i]
		if container.Name == string(naming.Slurmdbd) && runsHelper(container) {
			spec.TerminationGracePeriodSeconds = new(int64(terminationGraceSeconds))
			container.Args = slices.Insert(container.Args, 2, exitOption+exitTimeout.String())
		}
	}
}

// runsHelper reports whether a container runs slurmdbd through the helper, and not a command of the user.
func runsHelper(container *corev1.Container) bool {
	return len(container.Command) > 0 && container.Command[0] == naming.HelperPath &&
		len(container.Args) > 1 && container.Args[0] == naming.HelperPath
}

func podTemplate(scope *scope, digest string) (corev1.PodTemplateSpec, error) {
	accounting := scope.accounting
	user := scope.slurmUser()
	security := podtemplate.Restricted(user.UID, user.GID)
	security.FSGroup = security.RunAsGroup // to read the mounted files
	own := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      naming.Labels(naming.Slurmdbd, accounting.Name),
			Annotations: map[string]string{naming.AnnotationConfiguration: digest},
		},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			SecurityContext:              security,
			InitContainers: []corev1.Container{
				podtemplate.HelperContainer(helperName, scope.images.Operator), configurationContainer(scope),
			},
			Containers: []corev1.Container{slurmdbdContainer(scope)},
			Volumes: []corev1.Volume{
				filesVolume(scope),
				{
					Name: "etc",
					VolumeSource: corev1.VolumeSource{
						EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
					},
				},
				podtemplate.HelperVolume(),
				{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
	merged, err := podtemplate.Merge(own, accounting.Spec.Template, podtemplate.Part{
		Container: string(naming.Slurmdbd), Fragment: accounting.Spec.Slurmdbd,
	})
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	followImage(&merged.Spec, scope.images.For(naming.Slurmdbd))
	podtemplate.Size(&merged.Spec, helperName, configurationName)
	if err := podtemplate.Stamp(&merged, helperName); err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	podtemplate.AuthenticateReports(&merged)
	limitTermination(&merged.Spec) // after the stamp: no reason to replace a pod
	return merged, nil
}

// copyFiles copies the files to slurmdbd's configuration directory, if the pod runs as the user slurm of the image.
// Otherwise its termination message is that user.
const copyFiles = `if [ "$(id -u)" != "$(id -u slurm)" ]; then
    echo "$(id -u slurm):$(id -g slurm)" >` + terminationLog + `
    exit 1
fi
exec install -m 0600 ` + mountedDirectory + "/* " + slurmconf.Directory

// configurationContainer copies the files to slurmdbd's configuration directory. slurmdbd accepts only files that it
// owns and that no other user can read, which Kubernetes volumes do not support.
func configurationContainer(scope *scope) corev1.Container {
	return corev1.Container{
		Name: configurationName, Image: scope.images.For(naming.Slurmdbd),
		Command:         []string{"/bin/sh", "-c", copyFiles},
		SecurityContext: podtemplate.Locked(),
		// "id: slurm: no such user" is in the log.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: []corev1.VolumeMount{
			{Name: "configuration", MountPath: mountedDirectory, ReadOnly: true},
			{Name: "etc", MountPath: slurmconf.Directory},
		},
	}
}

// followImage sets the image of the container that copies the files to that of slurmdbd, unless the user set another
// one. So no other image must be pulled.
func followImage(spec *corev1.PodSpec, otherwise string) {
	chosen := slices.IndexFunc(spec.Containers,
		func(container corev1.Container) bool { return container.Name == string(naming.Slurmdbd) })
	copies := slices.IndexFunc(spec.InitContainers,
		func(container corev1.Container) bool { return container.Name == configurationName })
	if chosen >= 0 && copies >= 0 && spec.InitContainers[copies].Image == otherwise {
		spec.InitContainers[copies].Image = spec.Containers[chosen].Image
		spec.InitContainers[copies].ImagePullPolicy = spec.Containers[chosen].ImagePullPolicy
	}
}

func slurmdbdContainer(scope *scope) corev1.Container {
	return corev1.Container{
		Name:  string(naming.Slurmdbd),
		Image: scope.images.For(naming.Slurmdbd), Command: podtemplate.Start(scope.slurmUser().UID),
		Args: []string{
			naming.HelperPath, "slurmdbd", "--listen", ":" + strconv.Itoa(naming.PortAgent), "slurmdbd", "-D",
		},
		Ports: []corev1.ContainerPort{
			{Name: portName, ContainerPort: naming.PortSlurmdbd, Protocol: corev1.ProtocolTCP},
			{Name: "helper", ContainerPort: naming.PortAgent, Protocol: corev1.ProtocolTCP},
		},
		// slurmdbd starts only when its database does, and may then convert tables for hours, so it is never killed for
		// that.
		StartupProbe:             probe(2, math.MaxInt32),
		ReadinessProbe:           probe(10, 2),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          podtemplate.Locked(),
		VolumeMounts: []corev1.VolumeMount{
			podtemplate.HelperMount(),
			{Name: "etc", MountPath: slurmconf.Directory},
			{Name: "run", MountPath: path.Dir(slurmconf.SlurmdbdPidFile)},
			{Name: "tmp", MountPath: "/tmp"},
		},
	}
}

// probe sends slurmdbd a query that it cannot answer without its database: it listens, and even answers a ping, while
// the database is down. Once it runs it is queried no more often than necessary, because Slurm 24.11 logs a socket
// error for every query from its own pod.
func probe(period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{
			Command: []string{"sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster"},
		}},
		PeriodSeconds: period, TimeoutSeconds: 10, FailureThreshold: failures,
	}
}

// filesVolume returns the volume with all files of slurmdbd: the configuration and the keys.
func filesVolume(scope *scope) corev1.Volume {
	secret := func(name string, items ...corev1.KeyToPath) corev1.VolumeProjection {
		return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items,
		}}
	}
	sources := []corev1.VolumeProjection{
		secret(naming.Accounting(scope.accounting.Name)),
		secret(scope.keys.Slurm.Name, corev1.KeyToPath{Key: scope.keys.Slurm.Key, Path: slinkyv1beta1.SlurmKeyFile}),
		secret(scope.keys.JWT.Name, corev1.KeyToPath{Key: scope.keys.JWT.Key, Path: path.Base(slurmconf.JWTKeyFile)}),
	}
	if jwks := scope.accounting.Spec.JWKSKeyRef; jwks != nil {
		sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: jwks.Name},
			Items:                []corev1.KeyToPath{{Key: jwks.Key, Path: path.Base(slurmconf.JWKSFile)}},
		}})
	}
	for _, source := range tlsSources(scope.accounting.Spec.StorageConfig.TLS) {
		sources = append(sources, source.projection())
	}
	return corev1.Volume{Name: "configuration", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: sources, DefaultMode: new(int32(0o440))},
	}}
}
