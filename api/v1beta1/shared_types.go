package v1beta1

// LabelValue is the value of a Kubernetes label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// Metadata holds labels and annotations that are added to an object created by the operator.
type Metadata struct {
	// labels are added to the object. The operator's own labels take precedence, because they select pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations are added to the object.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodTemplate customizes the pods that the operator creates.
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.restartPolicy) || self.spec.restartPolicy == 'Always'",fieldPath=".spec.restartPolicy",message="template.spec.restartPolicy must be Always, because Slurm's daemons must be restarted whenever they exit; remove the field"
type PodTemplate struct {
	// metadata holds labels and annotations of the pods.
	// +optional
	Metadata Metadata `json:"metadata,omitempty,omitzero"`

	// spec is a partial PodSpec that is merged onto the operator's own; fields set here take precedence.
	// +optional
	Spec PodSpecFragment `json:"spec,omitempty,omitzero"`
}

// ServiceTemplate customizes a Service that the operator creates.
type ServiceTemplate struct {
	// metadata holds labels and annotations of the Service.
	// +optional
	Metadata Metadata `json:"metadata,omitempty,omitzero"`

	// spec is a partial ServiceSpec that is merged onto the operator's own; fields set here take precedence.
	// +optional
	Spec ServiceSpecFragment `json:"spec,omitempty,omitzero"`

	// nodePort is the port on every Kubernetes node if the Service's type is NodePort or LoadBalancer. If unset or 0,
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

	// key in the Secret's data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// optional is accepted for compatibility with core/v1 SecretKeySelector and ignored: the Secret and the key must
	// exist.
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

	// key in the ConfigMap's data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// optional is accepted for compatibility with core/v1 ConfigMapKeySelector and ignored: the ConfigMap and the key
	// must exist.
	// +optional
	Optional *bool `json:"optional,omitempty"`
}

// ExternalConfig is the address of a daemon that this operator does not run.
type ExternalConfig struct {
	// host is the DNS name or IP address at which the cluster's pods reach the daemon.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z]([-0-9A-Za-z.]*[0-9A-Za-z])?[.]?$') || isIP(self)",message="externalConfig.host must be a DNS name or an IP address without scheme or port; put the port into externalConfig.port"
	Host string `json:"host,omitempty"`

	// port on which the daemon listens. Defaults to Slurm's default port of the daemon (slurmctld 6817, slurmdbd 6819).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// SlurmUser is the numeric user and group that Slurm's daemons run as (SlurmUser in slurm.conf).
type SlurmUser struct {
	// uid of the slurm user in the images.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967294
	UID int64 `json:"uid,omitempty"`

	// gid of the slurm group in the images. Defaults to the uid.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967294
	GID int64 `json:"gid,omitempty"`
}
