package restapi

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// nobody is the user ID that slurmrestd runs as: it refuses to run as root or as SlurmUser.
const nobody = 65534

// portName is the name of slurmrestd's port.
const portName = "slurmrestd"

// children are the objects that a RestApi owns.
type children struct {
	configMap  *applycorev1.ConfigMapApplyConfiguration
	service    *applycorev1.ServiceApplyConfiguration
	deployment *applyappsv1.DeploymentApplyConfiguration
	// budget is nil if there is at most one replica.
	budget *applypolicyv1.PodDisruptionBudgetApplyConfiguration
}

// build builds all children. Its errors are shown to the user.
func build(restAPI *slinkyv1beta1.RestApi, image string, conf slurmconf.Document) (children, error) {
	name, labels := naming.RestAPI(restAPI.Name), naming.Labels(naming.Slurmrestd, restAPI.Name)
	selector := naming.Selector(naming.Slurmrestd, restAPI.Name)
	files := map[string]string{slurmconf.FileName: conf.Render()}
	template, err := podTemplate(restAPI, image, conf, slurmconf.Hash(files))
	if err != nil {
		return children{}, err
	}
	service, err := podtemplate.Service{
		Name: name, Namespace: restAPI.Namespace, Labels: labels, Selector: selector,
		Port: restAPI.Spec.Service.Port, PortName: portName,
	}.Merge(restAPI.Spec.Service.ServiceTemplate)
	if err != nil {
		return children{}, err
	}
	built := children{
		configMap: applycorev1.ConfigMap(name, restAPI.Namespace).WithLabels(labels).WithData(files),
		service:   service,
		deployment: applyappsv1.Deployment(name, restAPI.Namespace).
			WithLabels(naming.Merge(restAPI.Spec.Template.Metadata.Labels, labels)).
			WithAnnotations(naming.MergeAnnotations(restAPI.Spec.Template.Metadata.Annotations, nil)).
			WithSpec(applyappsv1.DeploymentSpec().
				WithReplicas(replicas(restAPI)).
				WithSelector(applymetav1.LabelSelector().WithMatchLabels(selector)).
				// A pod is deleted only after its replacement is ready.
				WithStrategy(applyappsv1.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType).
					WithRollingUpdate(applyappsv1.RollingUpdateDeployment().
						WithMaxUnavailable(intstr.FromInt32(0)).WithMaxSurge(intstr.FromInt32(1)))).
				WithTemplate(template)),
	}
	if replicas(restAPI) > 1 {
		built.budget = applypolicyv1.PodDisruptionBudget(name, restAPI.Namespace).WithLabels(labels).WithSpec(
			applypolicyv1.PodDisruptionBudgetSpec().WithMaxUnavailable(intstr.FromInt32(1)).
				WithSelector(applymetav1.LabelSelector().WithMatchLabels(selector)))
	}
	return built, nil
}

// replicas returns the desired number of pods.
func replicas(restAPI *slinkyv1beta1.RestApi) int32 {
	if restAPI.Spec.Replicas == nil {
		return 1
	}
	return *restAPI.Spec.Replicas
}

func podTemplate(restAPI *slinkyv1beta1.RestApi, image string, conf slurmconf.Document,
	hash string) (*applycorev1.PodTemplateSpecApplyConfiguration, error) {
	own := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      naming.Labels(naming.Slurmrestd, restAPI.Name),
			Annotations: map[string]string{naming.AnnotationConfiguration: hash},
		},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			SecurityContext:              podtemplate.Restricted(nobody, nobody),
			Containers:                   []corev1.Container{container(image, conf)},
			Volumes: []corev1.Volume{
				{Name: "etc", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: naming.RestAPI(restAPI.Name)},
				}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
	merged, err := podtemplate.Merge(own, restAPI.Spec.Template, podtemplate.Part{
		Container: string(naming.Slurmrestd), Fragment: restAPI.Spec.Slurmrestd,
	})
	if err != nil {
		return nil, err
	}
	return podtemplate.Configuration(merged)
}

func container(image string, conf slurmconf.Document) corev1.Container {
	return corev1.Container{
		Name:  string(naming.Slurmrestd),
		Image: image,
		// The entrypoint of an image may do anything. A shell also does what a container's first process must do.
		Command: []string{"/bin/sh", "-c", launch},
		Args:    arguments(conf),
		Env: []corev1.EnvVar{
			// slurmrestd has no token of its own: each request has one.
			{Name: "SLURM_JWT", Value: "daemon"},
			{Name: "SLURMRESTD_JSON", Value: "compact"},
			// Unsharing namespaces needs privileges that a restricted pod does not have.
			{Name: "SLURMRESTD_SECURITY", Value: "disable_unshare_sysv,disable_unshare_files"},
		},
		Ports: []corev1.ContainerPort{
			{Name: portName, ContainerPort: naming.PortSlurmrestd, Protocol: corev1.ProtocolTCP},
		},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{
				TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(portName)},
			},
			InitialDelaySeconds: 1, PeriodSeconds: 5,
		},
		// Gives the Service a few seconds to stop sending requests to the terminating pod.
		Lifecycle: &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", "3"}}},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          podtemplate.Locked(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "etc", MountPath: slurmconf.Directory, ReadOnly: true},
			{Name: "tmp", MountPath: "/tmp"},
		},
	}
}

// launch runs a command and translates SIGTERM, on which slurmrestd would exit in the middle of a response, to SIGINT,
// on which it completes it. A preStop hook could send SIGINT too, but it would terminate together with the container,
// which Kubernetes reports as a failure.
const launch = `"$0" "$@" & trap "kill -INT $!; wait $!; exit \$?" TERM; wait $!`

// arguments returns slurmrestd's command line. The slurmdbd plugin is loaded only if the cluster has accounting,
// because Slurm 24.11 refuses it otherwise. Without a host before the port, slurmrestd listens on all addresses of the
// families that slurm.conf enables.
func arguments(conf slurmconf.Document) []string {
	plugins := "openapi/slurmctld"
	if _, accounting := conf.Get("AccountingStorageType"); accounting {
		plugins += ",openapi/slurmdbd"
	}
	return []string{"slurmrestd", "-a", "rest_auth/jwt", "-s", plugins, ":6820"}
}
