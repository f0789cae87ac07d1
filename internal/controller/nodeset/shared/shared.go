// Package shared builds the objects that slurmd pods share: the Service for their DNS names, and their
// PodDisruptionBudget.
package shared

import (
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/applyconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
)

// HostsService returns the headless Service that gives the slurmd pods of all NodeSets of a Controller DNS names. It is
// the same for every NodeSet, and exists as long as the Controller.
func HostsService(controller *slinkyv1beta1.Controller) *applycorev1.ServiceApplyConfiguration {
	labels := naming.Labels(naming.Slurmd, controller.Name)
	labels[naming.LabelController] = controller.Name
	return applyconf.Service{
		Name: naming.WorkerHosts(controller.Name), Namespace: controller.Namespace, Labels: labels,
		Selector: naming.WorkerSelector(controller.Name), Port: naming.PortSlurmd, PortName: nodeconf.Container,
	}.Headless()
}

// unattainable is a minAvailable above any number of pods. With maxUnavailable or a percentage, the disruption
// controller would compare with spec.replicas, and allow the eviction of busy pods during every scale-in.
const unattainable = math.MaxInt32

// DisruptionBudget returns the PodDisruptionBudget that refuses the eviction of protected pods; nil if the user has
// disabled it.
func DisruptionBudget(nodeSet *slinkyv1beta1.NodeSet) *applypolicyv1.PodDisruptionBudgetApplyConfiguration {
	if wanted := nodeSet.Spec.WorkloadDisruptionProtection; wanted != nil && !*wanted {
		return nil
	}
	selector := naming.Selector(naming.Slurmd, nodeSet.Name)
	selector[slinkyv1beta1.LabelPodProtect] = "true"
	return applypolicyv1.PodDisruptionBudget(nodeSet.Name, nodeSet.Namespace).
		WithLabels(naming.Labels(naming.Slurmd, nodeSet.Name)).
		WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
			WithMinAvailable(intstr.FromInt32(unattainable)).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(selector)))
}
