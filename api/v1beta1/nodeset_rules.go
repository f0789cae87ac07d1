package v1beta1

import corev1 "k8s.io/api/core/v1"

// NodeConditionRule is a condition of a Kubernetes node that drains the Slurm nodes on it.
type NodeConditionRule struct {
	// type of the node condition, such as DiskPressure or a condition set by a health checker.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type corev1.NodeConditionType `json:"type,omitempty"`

	// status of the condition that causes the drain.
	// +optional
	// +kubebuilder:default="True"
	// +kubebuilder:validation:Enum="True";"False";Unknown
	Status corev1.ConditionStatus `json:"status,omitempty"`
}

// NodeTaintRule is a taint of a Kubernetes node that drains the Slurm nodes on it.
type NodeTaintRule struct {
	// key of the taint, such as karpenter.sh/disrupted.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key,omitempty"`

	// value of the taint. If unset, every value counts.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`
}

// NodeLabelRules maps labels of a Kubernetes node to properties of the Slurm nodes on it.
type NodeLabelRules struct {
	// features maps labels to Slurm features.
	// +optional
	// +listType=map
	// +listMapKey=label
	// +kubebuilder:validation:MaxItems=32
	Features []FeatureRule `json:"features,omitempty"`

	// topology derives the Slurm node's position in Slurm topologies from labels. The annotation
	// topology.slinky.slurm.net/spec on the Kubernetes node takes precedence.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Topology []TopologyRule `json:"topology,omitempty"`
}

// FeatureRule maps one label of the Kubernetes node to a feature. Without the label, the Slurm node does not get the
// feature.
type FeatureRule struct {
	// label is the key of the Kubernetes node's label, such as topology.kubernetes.io/zone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Label string `json:"label,omitempty"`

	// feature is the name of the feature, to which the label's value is appended: with the feature "zone" and the label
	// value eu1, the Slurm node gets the feature k8s/zone-eu1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z][-_.0-9A-Za-z]*$')",message="nodeLabels.features[].feature must consist of letters, digits, '-', '_' and '.', because other characters are operators in Slurm's --constraint; remove them"
	Feature string `json:"feature,omitempty"`
}

// TopologyRule derives a Slurm node's position in one Slurm topology from labels of its Kubernetes node.
type TopologyRule struct {
	// name of the topology in topology.yaml, such as topo-block.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z][-_.0-9A-Za-z]*$')",message="nodeLabels.topology[].name must be the name of a topology in topology.yaml, of letters, digits, '-', '_' and '.'; remove other characters"
	Name string `json:"name,omitempty"`

	// labels are the keys of the Kubernetes node's labels whose values, joined by ':' from the root down, form the
	// position. A Slurm node whose Kubernetes node lacks one of them gets no position in this topology.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	Labels []string `json:"labels,omitempty"`
}

// GresRule maps a device request to a GRES.
type GresRule struct {
	// resource is the name of the extended resource that the slurmd container requests, such as nvidia.com/mig-1g.10gb.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Resource string `json:"resource,omitempty"`

	// gres is the name of the GRES with an optional type, such as gpu or gpu:h100. The count is that of the request.
	// +required
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z][-_.0-9A-Za-z]*(:[A-Za-z0-9][-_.0-9A-Za-z]*)?$')",message="gres[].gres must be a GRES name with an optional type and no count, because the count is that of the request; use for example gpu or gpu:h100"
	Gres string `json:"gres,omitempty"`
}
