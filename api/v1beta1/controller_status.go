package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ControllerStatus is what a Slurm cluster is, as last seen.
type ControllerStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions tell the cluster's state: Ready, Progressing, Degraded, SlurmReachable and ConfigurationApplied.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// clusterName is Slurm's ClusterName in use.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// slurmVersion is the version of the running slurmctld, such as 26.05.5.
	// +optional
	SlurmVersion string `json:"slurmVersion,omitempty"`

	// apiVersion is the version of slurmrestd's API that the operator speaks with this cluster, such as v0.0.45.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// nodes counts the nodes that Slurm knows, by state.
	// +optional
	Nodes *NodeCounts `json:"nodes,omitempty"`

	// jobs counts the jobs that slurmctld knows, by state.
	// +optional
	Jobs *JobCounts `json:"jobs,omitempty"`

	// appliedConfigHash is the hash of the configuration that the running slurmctld uses, as read back from it.
	// +optional
	AppliedConfigHash string `json:"appliedConfigHash,omitempty"`
}

// NodeCounts counts Slurm nodes by state. A node that is drained while jobs still run on it counts as allocated and as
// drain.
type NodeCounts struct {
	// total is the number of nodes that Slurm knows.
	// +optional
	Total int32 `json:"total"`

	// idle is the number of nodes in the state IDLE.
	// +optional
	Idle int32 `json:"idle"`

	// allocated is the number of nodes in the states ALLOCATED or MIXED.
	// +optional
	Allocated int32 `json:"allocated"`

	// down is the number of nodes in the state DOWN.
	// +optional
	Down int32 `json:"down"`

	// drain is the number of nodes with the flag DRAIN.
	// +optional
	Drain int32 `json:"drain"`
}

// JobCounts counts Slurm jobs by state.
type JobCounts struct {
	// running is the number of jobs that run or complete.
	// +optional
	Running int32 `json:"running"`

	// pending is the number of jobs that wait.
	// +optional
	Pending int32 `json:"pending"`
}
