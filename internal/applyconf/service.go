package applyconf

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/invalid"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
)

// A Service is the operator's part of the Service in front of a daemon.
type Service struct {
	Name, Namespace string
	Labels          map[string]string
	Selector        map[string]string
	// Port is the port for clients; PortName is its name and that of the container's port.
	Port     int32
	PortName string
}

// Merge merges the user's template onto the Service.
func (s Service) Merge(template slinkyv1beta1.ServiceTemplate) (*applycorev1.ServiceApplyConfiguration, error) {
	spec := corev1.ServiceSpec{
		Selector: s.Selector,
		Ports: []corev1.ServicePort{{
			Name: s.PortName, Protocol: corev1.ProtocolTCP, Port: s.Port, TargetPort: intstr.FromString(s.PortName),
			NodePort: template.NodePort,
		}},
	}
	if err := podtemplate.Patch(&spec, template.Spec.Raw); err != nil {
		return nil, invalid.New("spec.service.spec", "%w", err)
	}
	configuration := &applycorev1.ServiceSpecApplyConfiguration{}
	if err := convert(spec, configuration); err != nil {
		return nil, err
	}
	return applycorev1.Service(s.Name, s.Namespace).
		WithLabels(naming.Merge(template.Metadata.Labels, s.Labels)).
		WithAnnotations(template.Metadata.Annotations).
		WithSpec(configuration), nil
}

// Headless returns a Service that only gives pods DNS names, even before they are ready, because they must resolve each
// other to become ready. Its port has another name, so that a scraper of the main Service does not scrape everything
// twice.
func (s Service) Headless() *applycorev1.ServiceApplyConfiguration {
	return applycorev1.Service(s.Name, s.Namespace).WithLabels(s.Labels).WithSpec(applycorev1.ServiceSpec().
		WithClusterIP(corev1.ClusterIPNone).
		WithPublishNotReadyAddresses(true).
		WithSelector(s.Selector).
		WithPorts(applycorev1.ServicePort().WithName("peers").WithProtocol(corev1.ProtocolTCP).WithPort(s.Port).
			WithTargetPort(intstr.FromString(s.PortName))))
}
