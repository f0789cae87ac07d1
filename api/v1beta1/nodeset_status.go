package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxOrdinalToNode is the maximum number of entries in status.ordinalToNode. Pins of higher ordinals are kept in
// ConfigMaps only, so that large NodeSets do not exceed etcd's object size limit or burden watchers.
const MaxOrdinalToNode = 1000

// NodeSetStatus is the observed state of a NodeSet.
type NodeSetStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the NodeSet: Ready, Available, Progressing, Degraded, SlurmReachable, ScaledIn, UpdateInProgress,
	// TopologyApplied and, with elastic, CapacityUnavailable.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// desired is the number of pods that should exist: spec.replicas, in DaemonSet mode the number of matching
	// Kubernetes nodes, and with elastic the number of Slurm nodes that are up or powering up.
	// +optional
	Desired int32 `json:"desired"`

	// replicas is the number of existing pods.
	// +optional
	Replicas int32 `json:"replicas"`

	// updatedReplicas is the number of pods at the current revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// readyReplicas is the number of ready pods.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is the number of pods that have been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// unavailableReplicas is the number of desired pods that are not available.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas"`

	// slurmIdle is the number of the NodeSet's Slurm nodes in the state IDLE.
	// +optional
	SlurmIdle int32 `json:"slurmIdle"`

	// slurmAllocated is the number of the NodeSet's Slurm nodes in the state ALLOCATED or MIXED.
	// +optional
	SlurmAllocated int32 `json:"slurmAllocated"`

	// slurmDown is the number of the NodeSet's Slurm nodes in the state DOWN.
	// +optional
	SlurmDown int32 `json:"slurmDown"`

	// slurmDrain is the number of the NodeSet's Slurm nodes with the flag DRAIN.
	// +optional
	SlurmDrain int32 `json:"slurmDrain"`

	// elastic counts Slurm nodes by why they are up. Set only for an elastic NodeSet.
	// +optional
	Elastic *NodeSetElasticStatus `json:"elastic,omitempty"`

	// nodeSetHash is the hash of the current revision. Updated pods have it as a label.
	// +optional
	NodeSetHash string `json:"nodeSetHash,omitempty"`

	// collisionCount is part of the hash, so that different revisions never have the same name.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// ordinalToNode maps ordinals to the Kubernetes nodes that they are pinned to. Set only if pinToNode is true, and
	// only for ordinals below 1000. All pins are in ConfigMaps that the NodeSet owns.
	// +optional
	// +kubebuilder:validation:MaxProperties=1000
	OrdinalToNode map[string]string `json:"ordinalToNode,omitempty"`

	// selector is the pods' label selector in the format of the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
}
