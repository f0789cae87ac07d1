package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VolumeClaimTemplate is a core/v1 PersistentVolumeClaim without status. (A PersistentVolumeClaim itself would gain an
// empty status with every write from Go, which a rule against changes would take for one.)
type VolumeClaimTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata of the claims.
	// +required
	Metadata VolumeClaimMetadata `json:"metadata,omitempty,omitzero"`

	// spec of the claims.
	// +optional
	Spec corev1.PersistentVolumeClaimSpec `json:"spec,omitempty,omitzero"`
}

// VolumeClaimMetadata is the metadata of claims made from a template.
type VolumeClaimMetadata struct {
	// name of the template. The claim of a pod is named <template>-<pod>.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="volumeClaimTemplates[].metadata.name must be a DNS label, because pods mount the volume under this name; use a-z, 0-9 and '-'"
	Name string `json:"name,omitempty"`

	Metadata `json:",inline"`
}

// PVCRetentionPolicyType says what becomes of a claim.
// +kubebuilder:validation:Enum=Retain;Delete
type PVCRetentionPolicyType string

const (
	// RetainPVC keeps the claim.
	RetainPVC PVCRetentionPolicyType = "Retain"
	// DeletePVC deletes the claim.
	DeletePVC PVCRetentionPolicyType = "Delete"
)

// PVCRetentionPolicy says when claims made from volumeClaimTemplates are deleted.
type PVCRetentionPolicy struct {
	// whenDeleted says what becomes of the claims when the NodeSet is deleted.
	// +optional
	// +kubebuilder:default=Retain
	WhenDeleted PVCRetentionPolicyType `json:"whenDeleted,omitempty"`

	// whenScaled says what becomes of an ordinal's claims when it is scaled in.
	// +optional
	// +kubebuilder:default=Retain
	WhenScaled PVCRetentionPolicyType `json:"whenScaled,omitempty"`
}
