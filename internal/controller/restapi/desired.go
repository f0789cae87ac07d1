package restapi

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/applyconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// nobody is the user ID that slurmrestd runs as: it refuses to run as root or as SlurmUser.
const nobody = 65534

// portName is the name of slurmrestd's port.
const portName = "slurmrestd"

// containerTLS is the name of the container that terminates TLS.
const containerTLS = "slurmrestd-tls"

// Paths in the pods.
const (
	socketDirectory      = "/run/slurmrestd"
	socket               = socketDirectory + "/slurmrestd.socket"
	certificateDirectory = "/etc/slurmrestd-tls"
)

// trustKey is the key of the ConfigMap with the certificates that clients trust.
const trustKey = "ca.crt"

// children are the objects that a RestApi owns.
type children struct {
	configMap *applycorev1.ConfigMapApplyConfiguration
	// trust has the certificates that clients trust.
	trust *applycorev1.ConfigMapApplyConfiguration
	// certificate is the operator's own; nil if the spec names another one.
	certificate *applycorev1.SecretApplyConfiguration
	service     *applycorev1.ServiceApplyConfiguration
	deployment  *applyappsv1.DeploymentApplyConfiguration
	// budget is nil if there is at most one replica.
	budget *applypolicyv1.PodDisruptionBudgetApplyConfiguration
}

// build builds all children. Its errors are shown to the user.
func build(scope *scope, served issued, conf slurmconf.Document) (children, error) {
	restAPI := scope.restAPI
	name, labels := naming.RestAPI(restAPI.Name), naming.Labels(naming.Slurmrestd, restAPI.Name)
	selector := naming.Selector(naming.Slurmrestd, restAPI.Name)
	files := map[string]string{slurmconf.FileName: conf.Render()}
	template, err := podTemplate(scope, conf, slurmconf.Hash(files))
	if err != nil {
		return children{}, err
	}
	service, err := applyconf.Service{
		Name: name, Namespace: restAPI.Namespace, Labels: labels, Selector: selector,
		Port: restAPI.Spec.Service.Port, PortName: portName,
	}.Merge(restAPI.Spec.Service.ServiceTemplate)
	if err != nil {
		return children{}, err
	}
	built := children{
		configMap: applycorev1.ConfigMap(name, restAPI.Namespace).WithLabels(labels).WithData(files),
		trust: applycorev1.ConfigMap(naming.RestAPITrust(restAPI.Name), restAPI.Namespace).WithLabels(labels).
			WithData(map[string]string{trustKey: served.server.Bundle}),
		service: service,
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
	if served.kept != nil {
		built.certificate = applycorev1.Secret(naming.RestAPICertificate(restAPI), restAPI.Namespace).WithLabels(labels).
			WithType(corev1.SecretTypeTLS).WithData(served.kept.Data())
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

func podTemplate(scope *scope, conf slurmconf.Document,
	hash string) (*applycorev1.PodTemplateSpecApplyConfiguration, error) {
	restAPI := scope.restAPI
	own := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      naming.Labels(naming.Slurmrestd, restAPI.Name),
			Annotations: map[string]string{naming.AnnotationConfiguration: hash},
		},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			SecurityContext:              podtemplate.Restricted(nobody, nobody),
			Containers: []corev1.Container{
				container(scope.image, conf), tlsContainer(scope.helper, restAPI.Spec.TLS.PlainHTTP),
			},
			Volumes: volumes(restAPI),
		},
	}
	merged, err := podtemplate.Merge(own, restAPI.Spec.Template, podtemplate.Part{
		Container: string(naming.Slurmrestd), Fragment: restAPI.Spec.Slurmrestd,
	})
	if err != nil {
		return nil, err
	}
	podtemplate.Size(&merged.Spec, containerTLS)
	return applyconf.PodTemplate(merged)
}

func volumes(restAPI *slinkyv1beta1.RestApi) []corev1.Volume {
	emptyDir := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	return []corev1.Volume{
		{Name: "etc", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: naming.RestAPI(restAPI.Name)},
		}}},
		{Name: "tmp", VolumeSource: emptyDir},
		{Name: "run", VolumeSource: emptyDir},
		// Only what is served: the Secret may have other keys.
		{Name: "certificate", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: naming.RestAPICertificate(restAPI),
			Items: []corev1.KeyToPath{
				{Key: corev1.TLSCertKey, Path: corev1.TLSCertKey},
				{Key: corev1.TLSPrivateKeyKey, Path: corev1.TLSPrivateKeyKey},
			},
		}}},
	}
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
		// The other container listens on this port. It is declared here because fragments of specs refer to it by name.
		Ports: []corev1.ContainerPort{
			{Name: portName, ContainerPort: naming.PortSlurmrestd, Protocol: corev1.ProtocolTCP},
		},
		ReadinessProbe: readiness(),
		// Gives the Service a few seconds to stop sending requests to the terminating pod.
		Lifecycle: &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", "3"}}},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          podtemplate.Locked(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "etc", MountPath: slurmconf.Directory, ReadOnly: true},
			{Name: "tmp", MountPath: "/tmp"},
			{Name: "run", MountPath: socketDirectory},
		},
	}
}

// tlsContainer returns the container that terminates TLS. It listens once it has a certificate and slurmrestd accepts
// connections.
func tlsContainer(image string, plainHTTP slinkyv1beta1.PlainHTTP) corev1.Container {
	args := []string{
		"terminate-tls", "--listen", ":" + strconv.Itoa(naming.PortSlurmrestd), "--socket", socket,
		"--certificate-directory", certificateDirectory,
	}
	if plainHTTP == slinkyv1beta1.PlainHTTPAllowed {
		args = append(args, "--plain-http")
	}
	return corev1.Container{
		Name: containerTLS, Image: image, Args: args,
		ReadinessProbe:           readiness(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          podtemplate.Locked(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "run", MountPath: socketDirectory, ReadOnly: true},
			{Name: "certificate", MountPath: certificateDirectory, ReadOnly: true},
		},
	}
}

func readiness() *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(naming.PortSlurmrestd)},
		},
		InitialDelaySeconds: 1, PeriodSeconds: 5,
	}
}

// launch runs a command and translates SIGTERM, on which slurmrestd would exit in the middle of a response, to SIGINT,
// on which it completes it. A preStop hook could send SIGINT too, but it would terminate together with the container,
// which Kubernetes reports as a failure. Before that it removes the socket of a slurmrestd that was killed, because a
// new one could not listen, and lets the other container connect even if the spec gives it another user: only these two
// containers have the directory.
const launch = `rm -f ` + socket + `; umask 0; ` +
	`"$0" "$@" & trap "kill -INT $!; wait $!; exit \$?" TERM; wait $!`

// arguments returns slurmrestd's command line. The slurmdbd plugin is loaded only if the cluster has accounting,
// because Slurm 24.11 refuses it otherwise.
func arguments(conf slurmconf.Document) []string {
	plugins := "openapi/slurmctld"
	if _, accounting := conf.Get("AccountingStorageType"); accounting {
		plugins += ",openapi/slurmdbd"
	}
	return []string{"slurmrestd", "-a", "rest_auth/jwt", "-s", plugins, "unix:" + socket}
}
