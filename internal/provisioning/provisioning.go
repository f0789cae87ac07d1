// Package provisioning has the part of cluster-autoscaler's API that the operator uses: a ProvisioningRequest asks for
// room for a group of pods before they are created.
//
// The types are written here: the module that has them imports a code generator and two test frameworks.
// +kubebuilder:object:generate=true
package provisioning

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// Version is the version of the API.
var Version = schema.GroupVersion{Group: "autoscaling.x-k8s.io", Version: "v1"}

// Kind is the kind of a Request.
const Kind = "ProvisioningRequest"

// The types of the conditions of a Request.
const (
	// ConditionProvisioned is True when there is room for the pods, or soon will be.
	ConditionProvisioned = "Provisioned"
	// ConditionFailed is True if there will be no room.
	ConditionFailed = "Failed"
	// ConditionCapacityRevoked is True if there is no longer room.
	ConditionCapacityRevoked = "CapacityRevoked"
	// ConditionBookingExpired is True when room is no longer kept for the pods.
	ConditionBookingExpired = "BookingExpired"
)

// The annotations of pods that use the room of a Request: without them, cluster-autoscaler would add room for the pods
// once more.
const (
	AnnotationRequest = "autoscaling.x-k8s.io/consume-provisioning-request"
	AnnotationClass   = "autoscaling.x-k8s.io/provisioning-class-name"
)

// The operator's own annotations of a Request: the job that the pods are for, and their Slurm nodes as a hostlist
// expression.
const (
	AnnotationJob        = "nodeset." + slinkyv1beta1.GroupName + "/job"
	AnnotationSlurmNodes = "nodeset." + slinkyv1beta1.GroupName + "/slurm-nodes"
)

// A Request is a ProvisioningRequest.
// +kubebuilder:object:root=true
type Request struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// A RequestList is a list of Requests.
// +kubebuilder:object:root=true
type RequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Request `json:"items"`
}

// Spec says what a Request asks for. It cannot be changed.
type Spec struct {
	// ClassName says how room is made.
	ClassName  string            `json:"provisioningClassName"`
	Parameters map[string]string `json:"parameters,omitempty"`
	PodSets    []PodSet          `json:"podSets"`
}

// A PodSet is a number of pods that are alike.
type PodSet struct {
	// Template is the PodTemplate of the pods.
	Template Reference `json:"podTemplateRef"`
	Count    int32     `json:"count"`
}

// A Reference names an object of the same namespace.
type Reference struct {
	Name string `json:"name"`
}

// Status is the answer to a Request.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AddToScheme adds the types to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(Version.WithKind(Kind), &Request{})
	scheme.AddKnownTypeWithName(Version.WithKind(Kind+"List"), &RequestList{})
	metav1.AddToGroupVersion(scheme, Version)
	return nil
}
