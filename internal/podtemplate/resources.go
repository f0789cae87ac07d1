package podtemplate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Size gives the operator's own helpers among the containers of a pod small requests and limits, unless the user has sized them: a namespace
// with a ResourceQuota takes no pod with a container that has none. The daemons are the user's to size.
func Size(spec *corev1.PodSpec, helpers ...string) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if slices.Contains(helpers, containers[i].Name) && !IsSized(containers[i].Resources) {
				containers[i].Resources = requirements("50m", "64Mi", "500m", "256Mi")
			}
		}
	}
}

// IsSized reports whether requests or limits are given.
func IsSized(resources corev1.ResourceRequirements) bool {
	return len(resources.Requests) > 0 || len(resources.Limits) > 0 || len(resources.Claims) > 0
}

// Validation are the requests and limits of a slurmctld that only validates a configuration.
func Validation() corev1.ResourceRequirements { return requirements("100m", "128Mi", "1", "1Gi") }

func requirements(cpuRequest, memoryRequest, cpuLimit, memoryLimit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpuRequest), corev1.ResourceMemory: resource.MustParse(memoryRequest)},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpuLimit), corev1.ResourceMemory: resource.MustParse(memoryLimit)},
	}
}
