package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxOrdinalToNode is the number of entries that status.ordinalToNode holds at most. Pins of higher ordinals are kept in
// ConfigMaps only, so that a NodeSet of any size stays an object that etcd and every watcher can carry.
const MaxOrdinalToNode = 1000

// NodeSetStatus is what a set of slurmd pods is, as last seen.
type NodeSetStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions tell the set's state: Ready, Progressing, Degraded, SlurmReachable, ScaledIn and UpdateInProgress.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// desired is the number of pods that should exist: spec.replicas, or in DaemonSet mode the number of matching
	// Kubernetes nodes.
	// +optional
	Desired int32 `json:"desired"`

	// replicas is the number of pods that exist.
	// +optional
	Replicas int32 `json:"replicas"`

	// updatedReplicas is the number of pods of the current revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// readyReplicas is the number of pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is the number of pods that have been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// unavailableReplicas is the number of desired pods that are not available.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas"`

	// slurmIdle is the number of the set's Slurm nodes in the state IDLE.
	// +optional
	SlurmIdle int32 `json:"slurmIdle"`

	// slurmAllocated is the number of the set's Slurm nodes in the states ALLOCATED or MIXED.
	// +optional
	SlurmAllocated int32 `json:"slurmAllocated"`

	// slurmDown is the number of the set's Slurm nodes in the state DOWN.
	// +optional
	SlurmDown int32 `json:"slurmDown"`

	// slurmDrain is the number of the set's Slurm nodes with the flag DRAIN.
	// +optional
	SlurmDrain int32 `json:"slurmDrain"`

	// nodeSetHash is the hash of the current revision, which updated pods carry as a label.
	// +optional
	NodeSetHash string `json:"nodeSetHash,omitempty"`

	// collisionCount is mixed into the hash so that two different revisions never share a name.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// ordinalToNode is the Kubernetes node that each ordinal is pinned to, present only with pinToNode and only for the
	// ordinals below 1000. All pins are in ConfigMaps that the NodeSet owns.
	// +optional
	// +kubebuilder:validation:MaxProperties=1000
	OrdinalToNode map[string]string `json:"ordinalToNode,omitempty"`

	// selector selects the set's pods, in the form that the scale subresource needs.
	// +optional
	Selector string `json:"selector,omitempty"`
}
