package podtemplate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Restricted returns the security context of a pod that runs as one user under the Pod Security Standard "restricted".
// Its containers need Locked as well.
func Restricted(uid, gid int64) *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsUser: &uid, RunAsGroup: &gid, RunAsNonRoot: new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// Locked returns the security context of a container that needs no privileges and writes only to its volumes.
func Locked() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// keepCapabilities gives merged containers the capabilities that the operator's own have, in addition to the user's. A
// list of capabilities is replaced by a strategic merge patch, so without it a daemon would lose those that it needs as
// soon as the user adds one. It does not give back what the user drops by name.
func keepCapabilities(own, merged []corev1.Container) {
	for i := range own {
		at := slices.IndexFunc(merged, func(container corev1.Container) bool { return container.Name == own[i].Name })
		if at < 0 || !hasCapabilities(&own[i]) || !hasCapabilities(&merged[at]) {
			continue
		}
		result := merged[at].SecurityContext.Capabilities
		for _, capability := range own[i].SecurityContext.Capabilities.Add {
			if !slices.Contains(result.Add, "ALL") && !slices.Contains(result.Add, capability) &&
				!slices.Contains(result.Drop, capability) {
				result.Add = append(result.Add, capability)
			}
		}
	}
}

func hasCapabilities(container *corev1.Container) bool {
	return container.SecurityContext != nil && container.SecurityContext.Capabilities != nil
}
