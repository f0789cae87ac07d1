package naming

import (
	"net"
	"strconv"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// MaxControllerPods is Slurm's maximum number of slurmctlds in a cluster.
const MaxControllerPods = 10

// ControllerPods returns the names of a Controller's slurmctld pods: the primary, then its backups. Slurm uses these
// names as hosts, and DNS resolves them: each pod has a Service with its name. An external Controller has none.
func ControllerPods(controller *slinkyv1beta1.Controller) []string {
	if controller.Spec.External {
		return nil
	}
	count := 1
	if controller.Spec.HA.Enabled {
		count += int(controller.Spec.HA.Backups)
	}
	pods := make([]string, count)
	for ordinal := range pods {
		pods[ordinal] = ControllerPod(controller.Name, ordinal)
	}
	return pods
}

// ControllerPod returns the name of one slurmctld pod of a Controller, and of the Service in front of only that pod.
func ControllerPod(controller string, ordinal int) string {
	return Controller(controller) + "-" + strconv.Itoa(ordinal)
}

// ControllerEndpoints returns the addresses of a Controller's slurmctlds, as host:port, in the order in which clients
// should try them. Clients need all of them, because a standby refuses requests that only the active one may answer.
// The names resolve in the Controller's namespace.
func ControllerEndpoints(controller *slinkyv1beta1.Controller) []string {
	if external := controller.Spec.ExternalConfig; controller.Spec.External && external != nil {
		port := int(external.Port)
		if port == 0 {
			port = PortSlurmctld
		}
		return []string{net.JoinHostPort(external.Host, strconv.Itoa(port))}
	}
	var endpoints []string
	for _, pod := range ControllerPods(controller) {
		endpoints = append(endpoints, net.JoinHostPort(pod, strconv.Itoa(PortSlurmctld)))
	}
	return endpoints
}
