package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ControllerStatus is the observed state of a Slurm cluster.
type ControllerStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the cluster: Ready, Available, Progressing, Degraded, SlurmReachable and ConfigurationApplied.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// isReady is true while the operator's connection to Slurm is up: slurmrestd and slurmctld answer, as in the
	// condition SlurmReachable. Addition.
	// +optional
	IsReady bool `json:"isReady"`

	// clusterName is the ClusterName that Slurm uses.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// slurmVersion is the version of the running slurmctld, such as 26.05.5.
	// +optional
	SlurmVersion string `json:"slurmVersion,omitempty"`

	// apiVersion is the version of slurmrestd's API that the operator uses for this cluster, such as v0.0.45.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// nodes counts the Slurm nodes by state.
	// +optional
	Nodes *NodeCounts `json:"nodes,omitempty"`

	// jobs counts the jobs in slurmctld by state.
	// +optional
	Jobs *JobCounts `json:"jobs,omitempty"`

	// jobConfinement is what the slurmd pods are prepared for. Jobs are confined once all pods are.
	// +optional
	JobConfinement JobConfinement `json:"jobConfinement,omitempty"`

	// slurmUser is the user that slurmctld runs as.
	// +optional
	SlurmUser *SlurmUser `json:"slurmUser,omitempty"`

	// appliedConfigHash is the hash of the configuration that the running slurmctld uses, as read back from it.
	// +optional
	AppliedConfigHash string `json:"appliedConfigHash,omitempty"`
}

// NodeCounts counts Slurm nodes by state. A drained node with running jobs counts as both allocated and drain.
type NodeCounts struct {
	// total is the number of Slurm nodes.
	// +optional
	Total int32 `json:"total"`

	// idle is the number of Slurm nodes in the state IDLE.
	// +optional
	Idle int32 `json:"idle"`

	// allocated is the number of Slurm nodes in the state ALLOCATED or MIXED.
	// +optional
	Allocated int32 `json:"allocated"`

	// down is the number of Slurm nodes in the state DOWN.
	// +optional
	Down int32 `json:"down"`

	// drain is the number of Slurm nodes with the flag DRAIN.
	// +optional
	Drain int32 `json:"drain"`
}

// JobCounts counts Slurm jobs by state.
type JobCounts struct {
	// running is the number of running and completing jobs.
	// +optional
	Running int32 `json:"running"`

	// pending is the number of pending jobs.
	// +optional
	Pending int32 `json:"pending"`
}
