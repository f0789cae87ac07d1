package v1beta1

// LabelValue is the value of a Kubernetes label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// Metadata holds the labels and annotations that a child object gets besides the operator's own.
type Metadata struct {
	// labels are put on the object besides the operator's own, which win where a key is in both: they select pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations are put on the object besides the operator's own.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodTemplate shapes the pods that the operator makes.
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.restartPolicy) || self.spec.restartPolicy == 'Always'",fieldPath=".spec.restartPolicy",message="template.spec.restartPolicy must be Always, because Slurm's daemons are to be restarted whenever they exit; remove the field"
type PodTemplate struct {
	// metadata holds the pods' labels and annotations.
	// +optional
	Metadata Metadata `json:"metadata,omitempty,omitzero"`

	// spec is a part of a PodSpec that is merged onto the operator's own; what is set here wins.
	// +optional
	Spec PodSpecFragment `json:"spec,omitempty,omitzero"`
}

// ServiceTemplate shapes a Service that the operator makes.
type ServiceTemplate struct {
	// metadata holds the Service's labels and annotations.
	// +optional
	Metadata Metadata `json:"metadata,omitempty,omitzero"`

	// spec is a part of a ServiceSpec that is merged onto the operator's own; what is set here wins.
	// +optional
	Spec ServiceSpecFragment `json:"spec,omitempty,omitzero"`

	// nodePort is the port on every Kubernetes node when the Service's type is NodePort or LoadBalancer. Absent or 0:
	// Kubernetes chooses one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	NodePort int32 `json:"nodePort,omitempty"`
}

// ObjectReference names an object in the same namespace.
// +structType=atomic
type ObjectReference struct {
	// name of the object, in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// SecretKeyReference selects one key of a Secret in the same namespace.
// +structType=atomic
type SecretKeyReference struct {
	// name of the Secret, in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key of the Secret's data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// optional is accepted because core/v1 SecretKeySelector has it, and ignored: what is referenced must exist.
	// +optional
	Optional *bool `json:"optional,omitempty"`
}

// ConfigMapKeyReference selects one key of a ConfigMap in the same namespace.
// +structType=atomic
type ConfigMapKeyReference struct {
	// name of the ConfigMap, in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key of the ConfigMap's data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// optional is accepted because core/v1 ConfigMapKeySelector has it, and ignored: what is referenced must exist.
	// +optional
	Optional *bool `json:"optional,omitempty"`
}

// ExternalConfig says where a daemon listens that runs outside this operator.
type ExternalConfig struct {
	// host is the DNS name or IP address under which the pods of this cluster reach the daemon.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z]([-0-9A-Za-z.]*[0-9A-Za-z])?[.]?$') || isIP(self)",message="externalConfig.host must be a DNS name or an IP address without scheme or port; put the port into externalConfig.port"
	Host string `json:"host,omitempty"`

	// port on which the daemon listens. Absent: Slurm's default port of that daemon (slurmctld 6817, slurmdbd 6819).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// SlurmUser is the user that Slurm's own daemons run as (SlurmUser in slurm.conf), as numbers.
type SlurmUser struct {
	// uid of the user slurm in the images.
	// +optional
	// +kubebuilder:default=64030
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967294
	UID int64 `json:"uid,omitempty"`

	// gid of the group slurm in the images.
	// +optional
	// +kubebuilder:default=64030
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967294
	GID int64 `json:"gid,omitempty"`
}
