package naming

import (
	"net"
	"strconv"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// MaxControllerPods is how many slurmctlds Slurm takes.
const MaxControllerPods = 10

// ControllerPods names the slurmctld pods of a Controller: the primary, then its backups. Slurm knows its hosts by these
// names, and so does DNS: each pod has a Service of its name. An external Controller has none.
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

// ControllerPod names one of the slurmctld pods of a Controller, and the Service in front of it alone.
func ControllerPod(controller string, ordinal int) string {
	return Controller(controller) + "-" + strconv.Itoa(ordinal)
}

// ControllerEndpoints are where the slurmctlds of a Controller listen, as host:port, in the order in which to ask them. A
// standby refuses what only the active one may answer, so whoever connects needs all of them. They are good in the
// namespace of the Controller.
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
