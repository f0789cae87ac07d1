package cluster

import (
	"encoding/json"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Annotations on configurations, and on the pods that have them.
const (
	annotationHash    = "controller." + slinkyv1beta1.GroupName + "/config-hash"
	annotationImage   = "controller." + slinkyv1beta1.GroupName + "/slurmctld-image"
	annotationVersion = "controller." + slinkyv1beta1.GroupName + "/slurm-version"
	// annotationSlurmKey is the digest of the key that all daemons share.
	annotationSlurmKey = "controller." + slinkyv1beta1.GroupName + "/slurm-key-digest"
	// annotationTouched is when a pod was last touched to make its kubelet look for new files.
	annotationTouched = "controller." + slinkyv1beta1.GroupName + "/touched"
	// annotationLeaving names the partitions that take no new jobs, and go when they have none.
	annotationLeaving = "controller." + slinkyv1beta1.GroupName + "/leaving-partitions"
	// annotationWhole is the hash of the candidate of which the configuration is what slurmctld did not refuse, and annotationRefused
	// the NodeSets whose changes it refused.
	annotationWhole   = "controller." + slinkyv1beta1.GroupName + "/refused-config-hash"
	annotationRefused = "controller." + slinkyv1beta1.GroupName + "/refused-nodesets"
	// annotationInForce on a validation run is the hash of the configuration in force, which NodeSets that are left out go back to.
	annotationInForce = "controller." + slinkyv1beta1.GroupName + "/config-hash-in-force"
	// annotationKeepsState on the StatefulSet says whether a slurmctld has run with its state on a claim.
	annotationKeepsState = "controller." + slinkyv1beta1.GroupName + "/keeps-state"
)

// portName names slurmctld's port.
const portName = string(naming.Slurmctld)

// defaultState is how much room the saved state gets unless the spec says.
const defaultState = "4Gi"

func labels(controller *slinkyv1beta1.Controller) map[string]string {
	return naming.Labels(naming.Slurmctld, controller.Name)
}

// clientService is where clients outside of the cluster's own pods find slurmctld.
func clientService(controller *slinkyv1beta1.Controller) (*applycorev1.ServiceApplyConfiguration, error) {
	return podtemplate.Service{
		Name: naming.Controller(controller.Name), Namespace: controller.Namespace, Labels: labels(controller),
		Selector: naming.Selector(naming.Slurmctld, controller.Name), Port: controller.Spec.Service.Port, PortName: portName,
	}.Merge(controller.Spec.Service.ServiceTemplate)
}

// hostService gives one slurmctld an address that stays when its pod goes: Slurm's commands try for minutes to resolve a name
// that is not there, and for seconds to reach an address that nobody answers at. A standby is not ready, and has one too. The
// port has another name than that of the Service in front of all, so that nothing is scraped twice.
func hostService(controller *slinkyv1beta1.Controller, pod string) *applycorev1.ServiceApplyConfiguration {
	selector := naming.Selector(naming.Slurmctld, controller.Name)
	selector[appsv1.StatefulSetPodNameLabel] = pod
	return applycorev1.Service(pod, controller.Namespace).WithLabels(labels(controller)).WithSpec(applycorev1.ServiceSpec().
		WithPublishNotReadyAddresses(true).
		WithSelector(selector).
		WithPorts(applycorev1.ServicePort().WithName("host").WithProtocol(corev1.ProtocolTCP).WithPort(naming.PortSlurmctld).
			WithTargetPort(intstr.FromString(portName))))
}

// serviceAccount is an identity without any rights, for pod security and image pulls.
func serviceAccount(controller *slinkyv1beta1.Controller) *applycorev1.ServiceAccountApplyConfiguration {
	return applycorev1.ServiceAccount(naming.Controller(controller.Name), controller.Namespace).
		WithLabels(labels(controller)).WithAutomountServiceAccountToken(false)
}

// promotedConfigMap is the configuration that slurmctld runs or starts with.
func promotedConfigMap(scope *scope, candidate candidate) (*applycorev1.ConfigMapApplyConfiguration, error) {
	live := configMap(scope, naming.Configuration(scope.controller.Name), candidate.hash).
		WithAnnotations(map[string]string{annotationVersion: scope.slurmVersion, annotationSlurmKey: slurmconf.KeyDigest(scope.slurmKey)}).
		WithData(candidate.files)
	if len(candidate.leaving) > 0 {
		live.WithAnnotations(map[string]string{annotationLeaving: strings.Join(candidate.leaving, ",")})
	}
	if candidate.whole != "" {
		refused, err := json.Marshal(candidate.refused)
		if err != nil {
			return nil, err
		}
		live.WithAnnotations(map[string]string{annotationWhole: candidate.whole, annotationRefused: string(refused)})
	}
	return live, nil
}

// candidateConfigMap is the configuration for a trial, which touches nothing that is real.
func candidateConfigMap(scope *scope, candidate candidate) (*applycorev1.ConfigMapApplyConfiguration, error) {
	document := slurmconf.Trial(candidate.document, slurmconf.TrialOptions{
		Host: trialName(scope, candidate), Directory: trialScratch + "/etc", State: trialScratch + "/state", PidFile: trialScratch + "/slurmctld.pid",
	})
	files := maps.Clone(candidate.files)
	files[slurmconf.FileName] = document.Render()
	if len(candidate.changes.NodeSets) > 0 {
		changes, err := json.Marshal(candidate.changes.Trial(candidate.document))
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
