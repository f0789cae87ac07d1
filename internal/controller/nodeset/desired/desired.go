// Package desired computes what the objects around a NodeSet should be: the label, annotation and conditions of a
// slurmd pod, the record of its Slurm node, the reservation for an update, the owners of PVCs, and the Kubernetes nodes
// that ordinals are pinned to.
//
// Package plan decides what happens to pods; nothing in here does. Every function is pure: it takes what was observed
// and returns what must be written, or nothing when it is right already.
package desired

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A Node is a slurmd pod together with its Slurm node and its Kubernetes node.
type Node struct {
	Pod *corev1.Pod
	// SlurmNode is its record in Slurm.
	SlurmNode *slurm.Node
	// KubernetesNode is nil if the Node object does not exist.
	KubernetesNode *corev1.Node
}
