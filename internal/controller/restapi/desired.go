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

// nobody is the user that slurmrestd runs as: it refuses to run as root or as SlurmUser.
const nobody = 65534

// portName names the port of slurmrestd.
const portName = "slurmrestd"

// children are the objects that belong to a RestApi.
type children struct {
	configMap  *applycorev1.ConfigMapApplyConfiguration
	service    *applycorev1.ServiceApplyConfiguration
	deployment *applyappsv1.DeploymentApplyConfiguration
	// budget is nil when there is nothing that it could protect.
	budget *applypolicyv1.PodDisruptionBudgetApplyConfiguration
}

// build makes all children. Its errors are for the user to read.
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
		deployment: applyappsv1.Deployment(name, restAPI.Namespace).WithLabels(labels).WithSpec(applyappsv1.DeploymentSpec().
			WithReplicas(replicas(restAPI)).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(selector)).
			// A pod goes only when another has taken its place.
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

// replicas is the number of pods that there should be.
func replicas(restAPI *slinkyv1beta1.RestApi) int32 {
	if restAPI.Spec.Replicas == nil {
		return 1
	}
	return *restAPI.Spec.Replicas
}

func podTemplate(restAPI *slinkyv1beta1.RestApi, image string, conf slurmconf.Document, hash string) (*applycorev1.PodTemplateSpecApplyConfiguration, error) {
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
		Args:  arguments(conf),
		Env: []corev1.EnvVar{
			// It has no token of its own: each request brings one.
			{Name: "SLURM_JWT", Value: "daemon"},
			{Name: "SLURMRESTD_JSON", Value: "compact"},
			// Unsharing namespaces needs privileges that a restricted pod does not have.
			{Name: "SLURMRESTD_SECURITY", Value: "disable_unshare_sysv,disable_unshare_files"},
		},
		Ports: []corev1.ContainerPort{{Name: portName, ContainerPort: naming.PortSlurmrestd, Protocol: corev1.ProtocolTCP}},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(portName)}},
			InitialDelaySeconds: 1, PeriodSeconds: 5,
		},
		// A few seconds in which the Service learns that the pod is going away.
		Lifecycle:                &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", "3"}}}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          podtemplate.Locked(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "etc", MountPath: slurmconf.Directory, ReadOnly: true},
			{Name: "tmp", MountPath: "/tmp"},
		},
	}
}

// launch runs a command and turns SIGTERM, which would end slurmrestd in the middle of an answer, into SIGINT, which lets it
// finish. A hook could send SIGINT too, but it would end together with the container, which Kubernetes reports as a failure.
const launch = `"$0" "$@" & trap "kill -INT $!; wait $!; exit \$?" TERM; wait $!`

// arguments run slurmrestd with what the cluster has: without accounting, Slurm 24.11 refuses to serve slurmdbd's part. No
// host before the port means all addresses of the families that slurm.conf turns on.
func arguments(conf slurmconf.Document) []string {
	plugins := "openapi/slurmctld"
	if _, accounting := conf.Get("AccountingStorageType"); accounting {
		plugins += ",openapi/slurmdbd"
	}
	return []string{"sh", "-c", launch, "slurmrestd", "-a", "rest_auth/jwt", "-s", plugins, ":6820"}
}
