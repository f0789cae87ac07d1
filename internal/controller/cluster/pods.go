package cluster

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/applyconf"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Names of containers, as in the fields of the spec.
const (
	containerSlurmctld   = "slurmctld"
	containerReconfigure = "reconfigure"
	containerLogfile     = "logfile"
	containerInstall     = "install-helper"
	containerValidation  = "trial"
)

// volumeState is the volume with the saved state.
const volumeState = "state"

// Paths in the pods.
const (
	helperRun           = "run"
	logDirectory        = "/var/log/slurm"
	validationScratch   = "/trial"
	validationCandidate = "/etc/slurm-candidate"
)

// terminationGraceSeconds is how long slurmctld may take to save its state when it is stopped: if it is killed, the
// most recent jobs are lost.
const terminationGraceSeconds = 120

// statefulSet returns the StatefulSet that runs slurmctld as planned.
func statefulSet(scope *scope, plan *plan) (*applyappsv1.StatefulSetApplyConfiguration, error) {
	controller := scope.controller
	template, err := podTemplate(scope, plan.image, plan.logFile(scope))
	if err != nil {
		return nil, err
	}
	if err := podtemplate.Stamp(&template, containerInstall); err != nil {
		return nil, err
	}
	podtemplate.AuthenticateReports(&template)
	template.Annotations[annotationVersion] = scope.releaseIn(plan.image) // after the stamp: no reason to replace a pod
	keeps := keepsState(scope)
	if keeps {
		expectState(&template)
	}
	configuration, err := applyconf.PodTemplate(template)
	if err != nil {
		return nil, err
	}
	return applyappsv1.StatefulSet(naming.Controller(controller.Name), controller.Namespace).
		WithLabels(labels(controller)).
		WithAnnotations(map[string]string{
			annotationKeepsState: strconv.FormatBool(keeps), annotationStateRelease: scope.releaseToRecord(),
		}).
		WithSpec(applyappsv1.StatefulSetSpec().
			WithReplicas(int32(len(naming.ControllerPods(controller)))). //nolint:gosec // at most ten

			WithServiceName(naming.Controller(controller.Name)).
			WithPodManagementPolicy(appsv1.ParallelPodManagement).
			// The operator replaces pods itself: not for a new helper image, and with backups in the right order. A
			// rolling update would wait forever for a standby to become ready.
			WithUpdateStrategy(applyappsv1.StatefulSetUpdateStrategy().
				WithType(appsv1.OnDeleteStatefulSetStrategyType)).
			WithRevisionHistoryLimit(2).
			WithSelector(applymetav1.LabelSelector().
				WithMatchLabels(naming.Selector(naming.Slurmctld, controller.Name))).
			WithTemplate(configuration)), nil
}

// podTemplate returns the template of slurmctld's pods. It depends on nothing in the configuration but the file that
// slurmctld logs to, if any.
func podTemplate(scope *scope, image, logFile string) (corev1.PodTemplateSpec, error) {
	controller := scope.controller
	own := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      labels(controller),
			Annotations: map[string]string{"kubectl.kubernetes.io/default-container": containerSlurmctld},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName:            naming.Controller(controller.Name),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			TerminationGracePeriodSeconds: new(int64(terminationGraceSeconds)),
			SecurityContext:               podSecurity(scope.slurmUser()),
			InitContainers: []corev1.Container{
				podtemplate.HelperContainer(containerInstall, scope.images.Operator),
			},
			Containers: []corev1.Container{
				slurmctldContainer(scope, image), reconfigureContainer(image),
			},
			Volumes: volumes(scope),
		},
	}
	if controller.Spec.HA.Enabled {
		own.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight: 100,
				PodAffinityTerm: corev1.PodAffinityTerm{
					TopologyKey: corev1.LabelHostname,
					LabelSelector: &metav1.LabelSelector{
						MatchLabels: naming.Selector(naming.Slurmctld, controller.Name),
					},
				},
			}},
		}}
	}
	if logFile != "" {
		own.Spec.Containers = append(own.Spec.Containers, logfileContainer(image, logFile))
	}
	slurmctld := controller.Spec.Slurmctld
	merged, err := podtemplate.Merge(own, controller.Spec.Template,
		podtemplate.Part{Container: containerSlurmctld, Fragment: slurmctld},
		podtemplate.Part{Container: containerReconfigure, Fragment: controller.Spec.Reconfigure},
		podtemplate.Part{Container: containerLogfile, Fragment: controller.Spec.Logfile})
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	for i := range merged.Spec.Containers {
		if merged.Spec.Containers[i].Name == containerSlurmctld {
			merged.Spec.Containers[i].Image = image // the spec's image may not be validated yet
		}
	}
	podtemplate.Size(&merged.Spec, containerInstall, containerReconfigure, containerLogfile)
	return merged, nil
}

func slurmctldContainer(scope *scope, image string) corev1.Container {
	container := corev1.Container{
		Name: containerSlurmctld, Image: image, Command: podtemplate.Start(scope.slurmUser().UID),
		Args: []string{naming.HelperPath, helperRun, "slurmctld", "-D"},
		Ports: []corev1.ContainerPort{
			{Name: portName, ContainerPort: naming.PortSlurmctld, Protocol: corev1.ProtocolTCP},
		},
		SecurityContext:          podtemplate.Locked(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: append(commonMounts(),
			corev1.VolumeMount{Name: volumeState, MountPath: slurmconf.StateSaveLocation},
			corev1.VolumeMount{Name: "log", MountPath: logDirectory},
			podtemplate.HelperMount(),
		),
	}
	if hasHTTP(scope.releaseIn(image)) {
		container.LivenessProbe = &corev1.Probe{
			ProbeHandler:        httpGet("/livez", intstr.FromString(portName)),
			InitialDelaySeconds: 30, PeriodSeconds: 30, TimeoutSeconds: 10, FailureThreshold: 10,
		}
	}
	return container
}

// reconfigureContainer runs the agent that makes slurmctld load a new configuration. The agent also reports whether
// slurmctld is ready, using the check that the release of Slurm supports.
func reconfigureContainer(image string) corev1.Container {
	return corev1.Container{
		Name: containerReconfigure, Image: image, Command: podtemplate.Start(0),
		Args: []string{
			naming.HelperPath, "agent", "--config", slurmconf.Directory, "--listen",
			":" + strconv.Itoa(naming.PortAgent),
		},
		Ports: []corev1.ContainerPort{
			{Name: "agent", ContainerPort: naming.PortAgent, Protocol: corev1.ProtocolTCP},
		},
		SecurityContext: podtemplate.Locked(),
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: httpGet("/readyz", intstr.FromString("agent")), PeriodSeconds: 2, TimeoutSeconds: 5,
			FailureThreshold: 3,
		},
		LivenessProbe: &corev1.Probe{
			ProbeHandler: httpGet("/livez", intstr.FromString("agent")), PeriodSeconds: 30, TimeoutSeconds: 5,
			FailureThreshold: 3,
		},
		VolumeMounts: append(commonMounts(), podtemplate.HelperMount()),
	}
}

// logfileContainer prints slurmctld's log if the configuration writes it to a file.
func logfileContainer(image, file string) corev1.Container {
	return corev1.Container{
		Name: containerLogfile, Image: image, Command: podtemplate.Start(0),
		Args:            []string{"tail", "--follow=name", "--retry", "--lines=+1", file},
		SecurityContext: podtemplate.Locked(),
		VolumeMounts:    []corev1.VolumeMount{{Name: "log", MountPath: logDirectory}, podtemplate.HelperMount()},
	}
}

func commonMounts() []corev1.VolumeMount {
	return []corev1.VolumeMount{
		{Name: "etc", MountPath: slurmconf.Directory, ReadOnly: true},
		{Name: "run", MountPath: "/run/slurmctld"},
		{Name: "tmp", MountPath: "/tmp"},
	}
}

// volumes returns the volumes of slurmctld's pod. Configuration files are readable and executable, because they include
// scripts; keys are readable only for slurmctld's user and group.
func volumes(scope *scope) []corev1.Volume {
	emptyDir := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	state := emptyDir
	if scope.claim != "" {
		state = corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: scope.claim},
		}
	}
	return []corev1.Volume{
		{Name: "etc", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: new(int32(0o555)),
			Sources: []corev1.VolumeProjection{
				{
					ConfigMap: &corev1.ConfigMapProjection{
						LocalObjectReference: corev1.LocalObjectReference{
							Name: naming.Configuration(scope.controller.Name),
						},
					},
				},
				keyProjection(scope.keys.Slurm, slinkyv1beta1.SlurmKeyFile),
				keyProjection(scope.keys.JWT, slinkyv1beta1.JWTKeyFile),
			},
		}}},
		{Name: volumeState, VolumeSource: state},
		{Name: "run", VolumeSource: emptyDir},
		{Name: "log", VolumeSource: emptyDir},
		{Name: "tmp", VolumeSource: emptyDir},
		podtemplate.HelperVolume(),
	}
}

func keyProjection(key slinkyv1beta1.SecretKeyReference, file string) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: key.Name},
		Items:                []corev1.KeyToPath{{Key: key.Key, Path: file, Mode: new(int32(0o440))}},
	}}
}

// validationPod returns the pod that validates a candidate.
func validationPod(scope *scope, candidate candidate) (*applycorev1.PodApplyConfiguration, error) {
	spec, err := validationSpec(scope)
	if err != nil {
		return nil, err
	}
	digest, err := validationDigest(scope)
	if err != nil {
		return nil, err
	}
	configuration, err := applyconf.PodTemplate(corev1.PodTemplateSpec{Spec: spec})
	if err != nil {
		return nil, err
	}
	return applycorev1.Pod(validationName(scope, candidate), scope.controller.Namespace).
		WithLabels(naming.Labels(naming.Validation, scope.controller.Name)).
		WithAnnotations(map[string]string{annotationHash: candidate.hash, annotationImage: scope.image,
			annotationVersion: scope.slurmVersion, annotationInForce: scope.hashInForce(), annotationRun: digest,
			annotationUser: clusterconf.FormatUser(scope.slurmUser())}).
		WithSpec(configuration.Spec), nil
}

// validationSpec returns the spec of the pod that validates candidates. It is scheduled like slurmctld and shares only
// the image with it.
func validationSpec(scope *scope) (corev1.PodSpec, error) {
	template, err := podTemplate(scope, scope.image, "")
	if err != nil {
		return corev1.PodSpec{}, err
	}
	emptyDir := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	spec := corev1.PodSpec{
		RestartPolicy:                corev1.RestartPolicyNever,
		ActiveDeadlineSeconds:        new(int64(600)),
		ServiceAccountName:           template.Spec.ServiceAccountName,
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext:              template.Spec.SecurityContext,
		ImagePullSecrets:             template.Spec.ImagePullSecrets,
		NodeSelector:                 template.Spec.NodeSelector,
		Tolerations:                  template.Spec.Tolerations,
		RuntimeClassName:             template.Spec.RuntimeClassName,
		PriorityClassName:            template.Spec.PriorityClassName,
		InitContainers: []corev1.Container{
			podtemplate.HelperContainer(containerInstall, scope.images.Operator),
		},
		Containers: []corev1.Container{{
			Name: containerValidation, Image: scope.image, Command: podtemplate.Start(0),
			Args: []string{
				naming.HelperPath, "validate", "--config", validationCandidate, "--scratch", validationScratch,
			},
			SecurityContext:          podtemplate.Locked(),
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			VolumeMounts: []corev1.VolumeMount{
				{Name: "candidate", MountPath: validationCandidate, ReadOnly: true},
				// For files that are included by their absolute path.
				{Name: "candidate", MountPath: slurmconf.Directory, ReadOnly: true},
				{Name: "trial", MountPath: validationScratch},
				{Name: "run", MountPath: "/run/slurmctld"},
				{Name: "log", MountPath: logDirectory},
				{Name: "tmp", MountPath: "/tmp"},
				podtemplate.HelperMount(),
			},
		}},
		Volumes: []corev1.Volume{
			{Name: "candidate", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: naming.Candidate(scope.controller.Name)},
				DefaultMode:          new(int32(0o555)),
			}}},
			{Name: "trial", VolumeSource: emptyDir}, {Name: "run", VolumeSource: emptyDir}, {
				Name: "log", VolumeSource: emptyDir,
			},
			{Name: "tmp", VolumeSource: emptyDir}, podtemplate.HelperVolume(),
		},
	}
	sizeValidation(&spec, &template.Spec)
	return spec, nil
}

// sizeValidation gives the containers of a validation run the resources of their counterparts in slurmctld's pod.
func sizeValidation(spec, slurmctld *corev1.PodSpec) {
	spec.Containers[0].Resources = podtemplate.Validation()
	for _, container := range slices.Concat(slurmctld.InitContainers, slurmctld.Containers) {
		switch {
		case container.Name == containerInstall:
			spec.InitContainers[0].Resources = container.Resources
		case container.Name == containerSlurmctld && podtemplate.IsSized(container.Resources):
			spec.Containers[0].Resources = container.Resources
		}
	}
	podtemplate.Size(spec, containerInstall) // the user may have removed it from slurmctld's pod
}

// logFile returns the file that slurmctld's log is written to; empty if there is none.
func (p *plan) logFile(scope *scope) string {
	document := scope.inForce()
	if p.stage == promote {
		document = p.candidate.document
	}
	file, _ := document.Get("SlurmctldLogFile")
	return file
}

// podSecurity returns a security context in which slurmctld reads its keys and writes its state through its group.
func podSecurity(user slinkyv1beta1.SlurmUser) *corev1.PodSecurityContext {
	security := podtemplate.Restricted(user.UID, user.GID)
	security.FSGroup, security.FSGroupChangePolicy = &user.GID, new(corev1.FSGroupChangeOnRootMismatch)
	return security
}

func httpGet(path string, port intstr.IntOrString) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: port}}
}
