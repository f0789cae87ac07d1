package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RestApi is slurmrestd in front of a Slurm cluster.
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories={slurm},shortName={slurmrestd}
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 52",fieldPath=".metadata",message="metadata.name must be a DNS label (a-z, 0-9 and '-') of at most 52 characters, because Service names are made from it; choose a shorter or simpler name"
type RestApi struct { //nolint:revive // The name is part of the API.
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of slurmrestd.
	// +required
	Spec RestApiSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state of slurmrestd.
	// +optional
	Status RestApiStatus `json:"status,omitempty,omitzero"`
}

// RestApiList is a list of RestApis.
// +kubebuilder:object:root=true
type RestApiList struct { //nolint:revive // The name is part of the API.
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RestApi `json:"items"`
}

// RestApiSpec is the desired state of slurmrestd.
type RestApiSpec struct { //nolint:revive // The name is part of the API.
	// controllerRef names the Controller of the Slurm cluster that slurmrestd serves; immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",fieldPath=".name",message="spec.controllerRef is immutable, because clients would find themselves on another Slurm cluster; put the old value back, or create another RestApi"
	ControllerRef ObjectReference `json:"controllerRef,omitempty,omitzero"`

	// replicas is the number of pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`

	// slurmrestd is merged onto the slurmrestd container.
	// +optional
	Slurmrestd ContainerFragment `json:"slurmrestd,omitempty,omitzero"`

	// template customizes the pods.
	// +optional
	Template PodTemplate `json:"template,omitempty,omitzero"`

	// service customizes the Service in front of slurmrestd.
	// +optional
	// +kubebuilder:default={}
	Service RestApiService `json:"service,omitempty,omitzero"`

	// tls configures the encryption of connections to slurmrestd. Addition.
	// +optional
	// +kubebuilder:default={}
	TLS RestApiTLS `json:"tls,omitempty,omitzero"`
}

// RestApiTLS configures the encryption of connections to slurmrestd.
// +kubebuilder:validation:XValidation:rule="!has(self.certificateRef) || !has(self.dnsNames) || size(self.dnsNames) == 0",fieldPath=".dnsNames",message="tls.dnsNames are for the certificate that the operator generates, and tls.certificateRef names another one; remove one of the two"
type RestApiTLS struct { //nolint:revive // The name is part of the API.
	// certificateRef names a Secret with the certificate that slurmrestd's pods serve: tls.crt, tls.key and, if clients
	// trust a CA, ca.crt, as cert-manager writes it. It is read again when it changes. Without it, the operator generates
	// and renews a certificate for the names of the Service. Addition.
	// +optional
	CertificateRef *ObjectReference `json:"certificateRef,omitempty"`

	// dnsNames are further names in the certificate that the operator generates, such as that of a load balancer.
	// Addition.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	DNSNames []string `json:"dnsNames,omitempty"`

	// plainHTTP is whether requests without TLS are Refused or Allowed. Their tokens can be read on the network. The
	// operator never sends any. Addition.
	// +optional
	// +kubebuilder:default=Refused
	PlainHTTP PlainHTTP `json:"plainHTTP,omitempty"`
}

// PlainHTTP is whether slurmrestd accepts requests without TLS.
// +kubebuilder:validation:Enum=Refused;Allowed
type PlainHTTP string

// Whether slurmrestd accepts requests without TLS.
const (
	PlainHTTPRefused PlainHTTP = "Refused"
	PlainHTTPAllowed PlainHTTP = "Allowed"
)

// RestApiService customizes the Service in front of slurmrestd.
// +kubebuilder:validation:XValidation:rule="!has(self.nodePort) || self.nodePort == 0 || (has(self.spec) && has(self.spec.type) && self.spec.type in ['NodePort', 'LoadBalancer'])",fieldPath=".nodePort",message="service.nodePort needs a Service of type NodePort or LoadBalancer; set service.spec.type, or remove nodePort"
type RestApiService struct { //nolint:revive // The name is part of the API.
	ServiceTemplate `json:",inline"`

	// port of the Service, on which clients reach slurmrestd.
	// +optional
	// +kubebuilder:default=6820
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// RestApiStatus is the observed state of slurmrestd.
type RestApiStatus struct { //nolint:revive // The name is part of the API.
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of slurmrestd: Ready, Available, Progressing and Degraded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// replicas is the number of existing pods. Addition.
	// +optional
	Replicas int32 `json:"replicas"`

	// ready is the number of ready pods and of desired pods, such as 2/3. Addition.
	// +optional
	Ready string `json:"ready,omitempty"`

	// selector is the pods' label selector in the format of the scale subresource. Addition.
	// +optional
	Selector string `json:"selector,omitempty"`

	// certificateExpiresAt is when the certificate expires that slurmrestd's pods serve. Addition.
	// +optional
	CertificateExpiresAt *metav1.Time `json:"certificateExpiresAt,omitempty"`
}
