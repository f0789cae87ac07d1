package worker

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// With confinement, the operator's helper first prepares the container's cgroups, and starts slurmd only if it can use
// them.

// confiningCapabilities are what slurmd needs to limit jobs to their devices and to bind them to cores.
var confiningCapabilities = []corev1.Capability{"BPF", "NET_ADMIN", "SYS_NICE"}

// remountCapabilities are what the helper needs to remount the cgroups, and to give both up afterwards.
var remountCapabilities = []corev1.Capability{"SETPCAP", "SYS_ADMIN"}

// helperNames are the further names of the helper in a pod.
func helperNames(set Set) []string {
	if set.Confined {
		return []string{naming.SlurmdPath}
	}
	return nil
}

// confine adds the helper and the privileges that it needs to slurmd's container.
func confine(slurmd *corev1.Container, access slinkyv1beta1.CgroupAccess) {
	helper := []string{naming.HelperPath, "confine", "--devices"}
	security := slurmd.SecurityContext
	security.Capabilities.Add = slices.Concat(security.Capabilities.Add, confiningCapabilities)
	switch access {
	case slinkyv1beta1.CgroupAccessRuntimeClass:
	case slinkyv1beta1.CgroupAccessPrivileged:
		security.Privileged, security.Capabilities, security.SeccompProfile = new(true), nil, nil
	case slinkyv1beta1.CgroupAccessRemount, "":
		helper = append(helper, "--remount")
		security.Capabilities.Add = slices.Concat(security.Capabilities.Add, remountCapabilities)
		security.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	}
	slurmd.Args = slices.Concat(helper, []string{"--"}, slurmd.Args)
}
