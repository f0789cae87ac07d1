package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeSetElastic makes the number of pods follow the jobs. Slurm has a record for each of the maxReplicas Slurm nodes
// and decides which of them a job needs; exactly these get a pod. A Slurm node that stays idle is powered down, and its
// pod deleted.
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",message="spec.elastic.minReplicas must not be greater than maxReplicas; lower it, or raise maxReplicas"
// +kubebuilder:validation:XValidation:rule="self.warmReplicas <= self.maxReplicas",fieldPath=".warmReplicas",message="spec.elastic.warmReplicas must not be greater than maxReplicas; lower it, or raise maxReplicas"
type NodeSetElastic struct {
	// maxReplicas is the maximum number of pods, and the number of Slurm nodes that users see.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	MaxReplicas int32 `json:"maxReplicas,omitempty"`

	// minReplicas is the number of Slurm nodes that always stay up.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	MinReplicas int32 `json:"minReplicas"`

	// warmReplicas is the number of idle Slurm nodes that are kept up, so that small jobs start at once.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	WarmReplicas int32 `json:"warmReplicas"`

	// idleTimeout is how long a Slurm node must be idle before it is powered down.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('10s')",message="spec.elastic.idleTimeout must be a duration of at least 10s; use for example 10m"
	IdleTimeout metav1.Duration `json:"idleTimeout,omitempty,omitzero"`

	// startTimeout is how long the pods for a job may take until all of their Slurm nodes have registered. After that,
	// all of them are given up, and the job returns to the queue.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('30s') && duration(self) <= duration('24h')",message="spec.elastic.startTimeout must be a duration from 30s to 24h; use for example 10m"
	StartTimeout metav1.Duration `json:"startTimeout,omitempty,omitzero"`

	// capacityBackoff is how long Slurm uses no more nodes than Kubernetes could place, after pods were given up because
	// Kubernetes had no room for them.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('10s')",message="spec.elastic.capacityBackoff must be a duration of at least 10s; use for example 10m"
	CapacityBackoff metav1.Duration `json:"capacityBackoff,omitempty,omitzero"`
}
