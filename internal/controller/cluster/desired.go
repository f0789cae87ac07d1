package cluster

import (
	"encoding/json"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/applyconf"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Annotations on configurations and on pods that use them.
const (
	annotationHash  = "controller." + slinkyv1beta1.GroupName + "/config-hash"
	annotationImage = "controller." + slinkyv1beta1.GroupName + "/slurmctld-image"
	// annotationVersion is the release of Slurm in the image; also on slurmctld's pods.
	annotationVersion = "controller." + slinkyv1beta1.GroupName + "/slurm-version"
	// annotationSlurmKey is the digest of the auth/slurm key that all daemons share.
	annotationSlurmKey = "controller." + slinkyv1beta1.GroupName + "/slurm-key-digest"
	// annotationUser are the IDs of the user and group that slurmctld runs as.
	annotationUser = "controller." + slinkyv1beta1.GroupName + "/slurm-user"
	// annotationTouched is when a pod was last touched to make its kubelet update the files.
	annotationTouched = "controller." + slinkyv1beta1.GroupName + "/touched"
	// annotationLeaving lists the partitions that accept no new jobs and are removed once they have none.
	annotationLeaving = "controller." + slinkyv1beta1.GroupName + "/leaving-partitions"
	// annotationClosedBefore lists the hashes of the validated configurations one of which follows this one, with which no
	// job starts.
	annotationClosedBefore = "controller." + slinkyv1beta1.GroupName + "/closed-before"
	// annotationOpenStates are the states of partitions before they were closed.
	annotationOpenStates = "controller." + slinkyv1beta1.GroupName + "/open-partition-states"
	// annotationRefusedHash is the hash of the candidate that slurmctld refused in part, and annotationRefused the
	// NodeSets whose changes it refused.
	annotationRefusedHash = "controller." + slinkyv1beta1.GroupName + "/refused-config-hash"
	annotationRefused     = "controller." + slinkyv1beta1.GroupName + "/refused-nodesets"
	// annotationInForce on a validation run is the hash of the configuration in force, to which NodeSets are reset if
	// they are left out.
	annotationInForce = "controller." + slinkyv1beta1.GroupName + "/config-hash-in-force"
	// annotationRun on a validation run is the digest of its pod's spec.
	annotationRun = "controller." + slinkyv1beta1.GroupName + "/run-digest"
	// annotationKeepsState on the StatefulSet records whether a slurmctld has run with its state on a PVC.
	annotationKeepsState = "controller." + slinkyv1beta1.GroupName + "/keeps-state"
	// annotationStateRelease on the StatefulSet is the release of Slurm that wrote the saved state; empty if none has.
	annotationStateRelease = "controller." + slinkyv1beta1.GroupName + "/state-release"
)

// portName is the name of slurmctld's port.
const portName = string(naming.Slurmctld)

// defaultState is the default size of the saved state's PVC.
const defaultState = "4Gi"

func labels(controller *slinkyv1beta1.Controller) map[string]string {
	return naming.Labels(naming.Slurmctld, controller.Name)
}

// inherit gives slurmctld's StatefulSet the labels and annotations of its pods that the user sets.
func inherit(set *applyappsv1.StatefulSetApplyConfiguration, metadata slinkyv1beta1.Metadata) {
	set.WithLabels(naming.Merge(metadata.Labels, set.Labels)).
		WithAnnotations(naming.MergeAnnotations(metadata.Annotations, set.Annotations))
}

// services returns the Services of a cluster.
func services(controller *slinkyv1beta1.Controller) ([]*applycorev1.ServiceApplyConfiguration, error) {
	var all []*applycorev1.ServiceApplyConfiguration
	for _, pod := range naming.ControllerPods(controller) {
		all = append(all, hostService(controller, pod))
	}
	service, err := clientService(controller)
	return append(all, service), err
}

// clientService returns the Service for clients other than the cluster's own pods.
func clientService(controller *slinkyv1beta1.Controller) (*applycorev1.ServiceApplyConfiguration, error) {
	return applyconf.Service{
		Name: naming.Controller(controller.Name), Namespace: controller.Namespace, Labels: labels(controller),
		Selector: naming.Selector(naming.Slurmctld, controller.Name), Port: controller.Spec.Service.Port,
		PortName: portName,
	}.Merge(controller.Spec.Service.ServiceTemplate)
}

// hostService returns the Service that gives one slurmctld an address which survives its pod: Slurm's commands retry
// for minutes if a name does not resolve, but only for seconds if an address does not answer. A standby has one too,
// although it is not ready. The port's name differs from that of the client Service, so that nothing is scraped twice.
func hostService(controller *slinkyv1beta1.Controller, pod string) *applycorev1.ServiceApplyConfiguration {
	selector := naming.Selector(naming.Slurmctld, controller.Name)
	selector[appsv1.StatefulSetPodNameLabel] = pod
	return applycorev1.Service(pod, controller.Namespace).WithLabels(labels(controller)).
		WithSpec(applycorev1.ServiceSpec().
			WithPublishNotReadyAddresses(true).
			WithSelector(selector).
			WithPorts(applycorev1.ServicePort().WithName("host").WithProtocol(corev1.ProtocolTCP).
				WithPort(naming.PortSlurmctld).
				WithTargetPort(intstr.FromString(portName))))
}

// serviceAccount returns a ServiceAccount without permissions, for pod security and image pulls.
func serviceAccount(controller *slinkyv1beta1.Controller) *applycorev1.ServiceAccountApplyConfiguration {
	return applycorev1.ServiceAccount(naming.Controller(controller.Name), controller.Namespace).
		WithLabels(labels(controller)).WithAutomountServiceAccountToken(false)
}

// promotedConfigMap returns the ConfigMap that slurmctld's pods mount.
func promotedConfigMap(scope *scope, plan *plan) (*applycorev1.ConfigMapApplyConfiguration, error) {
	candidate := plan.candidate
	live := configMap(scope, naming.Configuration(scope.controller.Name), candidate.hash).
		WithAnnotations(origin(scope.image, scope.slurmVersion, slurmconf.KeyDigest(scope.slurmKey), scope.slurmUser())).
		WithData(candidate.files)
	switch {
	case plan.reopens:
		live.WithAnnotations(scope.promoted.origin())
	case plan.commits:
		live.WithAnnotations(scope.accepted.origin())
	}
	if len(candidate.leaving) > 0 {
		live.WithAnnotations(map[string]string{annotationLeaving: strings.Join(candidate.leaving, ",")})
	}
	if len(candidate.closedBefore) > 0 {
		states, err := json.Marshal(candidate.openStates)
		if err != nil {
			return nil, err
		}
		live.WithAnnotations(map[string]string{
			annotationClosedBefore: strings.Join(candidate.closedBefore, ","), annotationOpenStates: string(states),
		})
	}
	if candidate.refusedHash != "" {
		refused, err := json.Marshal(candidate.refused)
		if err != nil {
			return nil, err
		}
		live.WithAnnotations(map[string]string{
			annotationRefusedHash: candidate.refusedHash, annotationRefused: string(refused),
		})
	}
	return live, nil
}

// origin returns the annotations that say how a configuration was validated: with which image, release, key and user.
func origin(image, release, keyDigest string, user slinkyv1beta1.SlurmUser) map[string]string {
	return map[string]string{
		annotationImage: image, annotationVersion: release, annotationSlurmKey: keyDigest,
		annotationUser: clusterconf.FormatUser(user),
	}
}

// origin returns the annotations of a promoted configuration that say how it was validated.
func (p *promoted) origin() map[string]string {
	return origin(p.image, p.slurmVersion, p.slurmKey, *p.user)
}

// candidateConfigMap returns the ConfigMap for a validation run, which must not affect the real cluster.
func candidateConfigMap(scope *scope, candidate candidate) (*applycorev1.ConfigMapApplyConfiguration, error) {
	content := candidate
	if candidate.change != nil {
		content = *candidate.change
	}
	document := slurmconf.ForValidation(content.document, slurmconf.ValidationOptions{
		Host: validationName(scope, candidate), Directory: validationScratch + "/etc", State: validationScratch +
			"/state", PidFile: validationScratch + "/slurmctld.pid",
	})
	files := maps.Clone(content.files)
	files[slurmconf.FileName] = document.Render()
	if len(candidate.changes.NodeSets) > 0 {
		changes, err := json.Marshal(candidate.changes.ForValidation(candidate.document))
		if err != nil {
			return nil, err
		}
		files[slurmconf.ChangesFile] = string(changes)
	}
	return configMap(scope, naming.Candidate(scope.controller.Name), candidate.hash).WithData(files), nil
}

func configMap(scope *scope, name, hash string) *applycorev1.ConfigMapApplyConfiguration {
	return applycorev1.ConfigMap(name, scope.controller.Namespace).
		WithLabels(labels(scope.controller)).
		WithAnnotations(map[string]string{annotationHash: hash, annotationImage: scope.image})
}
