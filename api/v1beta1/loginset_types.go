package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LoginSet is a set of login pods, which run sshd for the users and sackd for Slurm's commands.
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories={slurm},shortName={lss,sackd}
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 52",fieldPath=".metadata",message="metadata.name must be a DNS label (a-z, 0-9 and '-') of at most 52 characters, because host and Service names are made from it; choose a shorter or simpler name"
type LoginSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the LoginSet.
	// +required
	Spec LoginSetSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state of the LoginSet.
	// +optional
	Status LoginSetStatus `json:"status,omitempty,omitzero"`
}

// LoginSetList is a list of LoginSets.
// +kubebuilder:object:root=true
type LoginSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LoginSet `json:"items"`
}

// LoginSetSpec is the desired state of a LoginSet. The rule about private keys is on the type and not on the field,
// because the message of a field's rule repeats the value.
// +kubebuilder:validation:XValidation:rule="!has(self.rootSshAuthorizedKeys) || !self.rootSshAuthorizedKeys.contains('PRIVATE KEY')",fieldPath=".rootSshAuthorizedKeys",message="spec.rootSshAuthorizedKeys contains a private key, which anybody who may read this object could use; replace it by the public key and make a new pair"
type LoginSetSpec struct {
	// controllerRef names the Controller of the Slurm cluster that users log in to; immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",fieldPath=".name",message="spec.controllerRef is immutable, because users would find themselves on another Slurm cluster; put the old value back, or create another LoginSet"
	ControllerRef ObjectReference `json:"controllerRef,omitempty,omitzero"`

	// replicas is the number of pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`

	// login is merged onto the login container, which runs sshd and sackd.
	// +optional
	Login ContainerFragment `json:"login,omitempty,omitzero"`

	// initconf is merged onto the init container that prepares the login container's files.
	// +optional
	Initconf ContainerFragment `json:"initconf,omitempty,omitzero"`

	// template customizes the pods.
	// +optional
	Template PodTemplate `json:"template,omitempty,omitzero"`

	// rootSshAuthorizedKeys holds the public keys that may log in as root, one per line, in the format of
	// authorized_keys.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	RootSSHAuthorizedKeys string `json:"rootSshAuthorizedKeys,omitempty"`

	// extraSshdConfig is added to sshd_config before the operator's own lines, because sshd uses the first value of a
	// setting. Match blocks are added after them.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	ExtraSshdConfig string `json:"extraSshdConfig,omitempty"`

	// sssdConfRef selects an sssd.conf. Addition: optional. If unset, only local accounts exist.
	// +optional
	SSSDConfRef *SecretKeyReference `json:"sssdConfRef,omitempty"`

	// strategy determines how the Deployment replaces pods.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type in ['Recreate', 'RollingUpdate']",message="spec.strategy.type must be Recreate or RollingUpdate; choose one of them, or remove the field"
	// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Recreate' || !has(self.rollingUpdate)",message="spec.strategy.rollingUpdate must not be set when spec.strategy.type is Recreate; remove rollingUpdate, or use type RollingUpdate"
	// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || ((!has(self.rollingUpdate.maxSurge) || (type(self.rollingUpdate.maxSurge) == string ? self.rollingUpdate.maxSurge.matches('^(100|[0-9]{1,2})%$') : (self.rollingUpdate.maxSurge >= 0 && self.rollingUpdate.maxSurge <= 1000))) && (!has(self.rollingUpdate.maxUnavailable) || (type(self.rollingUpdate.maxUnavailable) == string ? self.rollingUpdate.maxUnavailable.matches('^(100|[0-9]{1,2})%$') : (self.rollingUpdate.maxUnavailable >= 0 && self.rollingUpdate.maxUnavailable <= 1000))))",message="spec.strategy.rollingUpdate.maxSurge and maxUnavailable must be numbers from 0 to 1000 or percentages from 0% to 100%; use for example 1 or 25%"
	Strategy appsv1.DeploymentStrategy `json:"strategy,omitempty,omitzero"`

	// service customizes the Service in front of sshd.
	// +optional
	// +kubebuilder:default={}
	Service LoginSetService `json:"service,omitempty,omitzero"`
}

// LoginSetService customizes the Service in front of sshd.
// +kubebuilder:validation:XValidation:rule="!has(self.nodePort) || self.nodePort == 0 || (has(self.spec) && has(self.spec.type) && self.spec.type in ['NodePort', 'LoadBalancer'])",fieldPath=".nodePort",message="service.nodePort needs a Service of type NodePort or LoadBalancer; set service.spec.type, or remove nodePort"
type LoginSetService struct {
	ServiceTemplate `json:",inline"`

	// port of the Service, on which users reach sshd.
	// +optional
	// +kubebuilder:default=22
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// LoginSetStatus is the observed state of a LoginSet.
type LoginSetStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the LoginSet: Ready, Available, Progressing and Degraded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// replicas is the number of existing pods.
	// +optional
	Replicas int32 `json:"replicas"`

	// ready is the number of ready pods and of desired pods, such as 2/3.
	// +optional
	Ready string `json:"ready,omitempty"`

	// selector is the pods' label selector in the format of the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
}
