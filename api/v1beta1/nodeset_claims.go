package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VolumeClaimTemplate is a core/v1 PersistentVolumeClaim without status. (Go clients add an empty status to a
// PersistentVolumeClaim on every write, which the immutability rule would take for a change.)
type VolumeClaimTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata of the PVCs.
	// +required
	Metadata VolumeClaimMetadata `json:"metadata,omitempty,omitzero"`

	// spec of the PVCs.
	// +optional
	Spec corev1.PersistentVolumeClaimSpec `json:"spec,omitempty,omitzero"`
}

// VolumeClaimMetadata is the metadata of the PVCs of a template.
type VolumeClaimMetadata struct {
	// name of the template. The PVC of a pod is named <template>-<pod>.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="volumeClaimTemplates[].metadata.name must be a DNS label, because pods mount the volume under this name; use a-z, 0-9 and '-'"
	Name string `json:"name,omitempty"`

	Metadata `json:",inline"`
}

// PVCRetentionPolicyType determines whether a PVC is deleted.
// +kubebuilder:validation:Enum=Retain;Delete
type PVCRetentionPolicyType string

const (
	// RetainPVC keeps the PVC.
	RetainPVC PVCRetentionPolicyType = "Retain"
	// DeletePVC deletes the PVC.
	DeletePVC PVCRetentionPolicyType = "Delete"
)

// PVCRetentionPolicy determines when the PVCs of volumeClaimTemplates are deleted.
type PVCRetentionPolicy struct {
	// whenDeleted determines what happens to the PVCs when the NodeSet is deleted.
	// +optional
	// +kubebuilder:default=Retain
	WhenDeleted PVCRetentionPolicyType `json:"whenDeleted,omitempty"`

	// whenScaled determines what happens to the PVCs of an ordinal when it is scaled in.
	// +optional
	// +kubebuilder:default=Retain
	WhenScaled PVCRetentionPolicyType `json:"whenScaled,omitempty"`
}
