package podtemplate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Size sets small requests and limits for the operator's helper containers in a pod, unless the user set some: a
// namespace with a ResourceQuota rejects pods with containers that have none. The user sets those of the daemons.
func Size(spec *corev1.PodSpec, helpers ...string) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if slices.Contains(helpers, containers[i].Name) && !IsSized(containers[i].Resources) {
				containers[i].Resources = requirements("50m", "64Mi", "500m", "256Mi")
			}
		}
	}
}

// IsSized reports whether requests or limits are set.
func IsSized(resources corev1.ResourceRequirements) bool {
	return len(resources.Requests) > 0 || len(resources.Limits) > 0 || len(resources.Claims) > 0
}

// Validation returns the requests and limits of a slurmctld in a validation run.
func Validation() corev1.ResourceRequirements { return requirements("100m", "128Mi", "1", "1Gi") }

func requirements(cpuRequest, memoryRequest, cpuLimit, memoryLimit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse(cpuRequest),
			corev1.ResourceMemory: resource.MustParse(memoryRequest),
		},
		Limits: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpuLimit), corev1.ResourceMemory: resource.MustParse(memoryLimit),
		},
	}
}
