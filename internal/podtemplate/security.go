package podtemplate

import corev1 "k8s.io/api/core/v1"

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
