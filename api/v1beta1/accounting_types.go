package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Accounting is a slurmdbd with its database, which records jobs, users and accounts of one or more Slurm clusters.
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories={slurm},shortName={slurmdbd}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 40",fieldPath=".metadata",message="metadata.name must be a DNS label (a-z, 0-9 and '-') of at most 40 characters, because host and Service names are made from it; choose a shorter or simpler name"
type Accounting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the accounting service.
	// +required
	Spec AccountingSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state of the accounting service.
	// +optional
	Status AccountingStatus `json:"status,omitempty,omitzero"`
}

// AccountingList is a list of Accountings.
// +kubebuilder:object:root=true
type AccountingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Accounting `json:"items"`
}

// AccountingSpec is the desired state of an accounting service.
// +kubebuilder:validation:XValidation:rule="self.external || has(self.storageConfig)",fieldPath=".storageConfig",message="spec.storageConfig is required unless spec.external is true; say where the MariaDB or MySQL database is"
// +kubebuilder:validation:XValidation:rule="!self.external || has(self.externalConfig)",fieldPath=".externalConfig",message="spec.externalConfig is required when spec.external is true; set externalConfig.host to where slurmdbd runs"
// +kubebuilder:validation:XValidation:rule="!self.external || has(self.slurmKeyRef)",fieldPath=".slurmKeyRef",message="spec.slurmKeyRef is required when spec.external is true, because the key of a running slurmdbd cannot be generated; name the Secret that holds its slurm.key"
// +kubebuilder:validation:XValidation:rule="!has(self.jwtKeyRef) || !has(self.jwtHs256KeyRef) || (self.jwtKeyRef.name == self.jwtHs256KeyRef.name && self.jwtKeyRef.key == self.jwtHs256KeyRef.key)",fieldPath=".jwtHs256KeyRef",message="spec.jwtHs256KeyRef is the older name of spec.jwtKeyRef and must not differ from it; remove jwtHs256KeyRef"
type AccountingSpec struct {
	// slurmKeyRef selects the shared key of auth/slurm. Addition: optional. Defaults to a key that is generated once in
	// the Secret <name>-auth-slurm, key slurm.key. Controllers that refer to this Accounting and set no key of their
	// own use it too.
	// +optional
	SlurmKeyRef *SecretKeyReference `json:"slurmKeyRef,omitempty"`

	// jwtKeyRef selects the HS256 key of auth/jwt. Addition: optional. Defaults to jwt_hs256.key in the Secret
	// <name>-auth-jwths256, which is generated once, unless the Secret <name>-auth-jwt has a key. Controllers that
	// refer to this Accounting and set no key of their own use it too.
	// +optional
	JWTKeyRef *SecretKeyReference `json:"jwtKeyRef,omitempty"`

	// jwtHs256KeyRef is the older name of jwtKeyRef. If both are set, they must be equal.
	// +optional
	JWTHS256KeyRef *SecretKeyReference `json:"jwtHs256KeyRef,omitempty"`

	// jwksKeyRef selects a JSON Web Key Set with additional keys that auth/jwt accepts.
	// +optional
	JWKSKeyRef *ConfigMapKeyReference `json:"jwksKeyRef,omitempty"`

	// external means that slurmdbd runs elsewhere, at externalConfig. The operator then runs no slurmdbd.
	// +optional
	// +kubebuilder:default=false
	External bool `json:"external,omitempty"`

	// externalConfig is the address of an external slurmdbd.
	// +optional
	ExternalConfig *ExternalConfig `json:"externalConfig,omitempty"`

	// slurmdbd is merged onto the slurmdbd container.
	// +optional
	Slurmdbd ContainerFragment `json:"slurmdbd,omitempty,omitzero"`

	// template customizes slurmdbd's pod.
	// +optional
	Template PodTemplate `json:"template,omitempty,omitzero"`

	// storageConfig configures the connection to the database. Required unless external is true.
	// +optional
	StorageConfig *StorageConfig `json:"storageConfig,omitempty"`

	// extraConf is merged into slurmdbd.conf line by line. Keys that the operator manages are rejected.
	// +optional
	// +kubebuilder:validation:MaxLength=524288
	ExtraConf string `json:"extraConf,omitempty"`

	// service customizes the Service in front of slurmdbd.
	// +optional
	// +kubebuilder:default={}
	Service AccountingService `json:"service,omitempty,omitzero"`

	// slurmUser is the user that slurmdbd runs as. Addition. Defaults to the user slurm of its image.
	// +optional
	SlurmUser SlurmUser `json:"slurmUser,omitempty,omitzero"`
}

// StorageConfig configures the connection to the accounting database.
type StorageConfig struct {
	// host is the DNS name or IP address of the MariaDB or MySQL server.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z]([-0-9A-Za-z.]*[0-9A-Za-z])?[.]?$') || isIP(self)",message="storageConfig.host must be a DNS name or an IP address without scheme or port; put the port into storageConfig.port"
	Host string `json:"host,omitempty"`

	// port of the database server.
	// +optional
	// +kubebuilder:default=3306
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// database is the name of the database. slurmdbd creates it if it does not exist.
	// +optional
	// +kubebuilder:default=slurm_acct_db
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-_$0-9A-Za-z]+$')",message="storageConfig.database must consist of letters, digits, '_', '-' and '$', because other characters need quoting in SQL; rename the database"
	Database string `json:"database,omitempty"`

	// username is the database user.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^ #=]+$') && !self.matches('[\\\\n\\\\r\\\\t]')",message="storageConfig.username must not contain blanks, line breaks, '#' or '=', because it becomes a value in slurmdbd.conf; use another database user"
	Username string `json:"username,omitempty"`

	// passwordKeyRef selects the database user's password.
	// +required
	PasswordKeyRef *SecretKeyReference `json:"passwordKeyRef,omitempty"`

	// tls encrypts the connection, and verifies that the server's certificate is for host and from the given CA.
	// Addition. Without it, the connection is not encrypted. The client library in slurmdbd's image must be MariaDB
	// Connector/C 3.3 or later: with others, slurmdbd does not connect.
	// +optional
	TLS *StorageTLS `json:"tls,omitempty"`
}

// StorageTLS configures TLS for the connection to the accounting database.
// +kubebuilder:validation:XValidation:rule="has(self.caSecretRef) != has(self.caConfigMapRef)",message="storageConfig.tls needs either caSecretRef or caConfigMapRef, because the server's certificate is verified with the CA in it; set one of them"
type StorageTLS struct {
	// caSecretRef selects the certificates of the CA, in PEM, in a Secret, such as ca.crt in one of cert-manager.
	// +optional
	CASecretRef *SecretKeyReference `json:"caSecretRef,omitempty"`

	// caConfigMapRef selects the certificates of the CA, in PEM, in a ConfigMap.
	// +optional
	CAConfigMapRef *ConfigMapKeyReference `json:"caConfigMapRef,omitempty"`

	// clientCertificateRef names a Secret of type kubernetes.io/tls, with the certificate (tls.crt) and the key
	// (tls.key) that slurmdbd presents to the server.
	// +optional
	ClientCertificateRef *ObjectReference `json:"clientCertificateRef,omitempty"`
}

// AccountingService customizes the Service in front of slurmdbd.
// +kubebuilder:validation:XValidation:rule="!has(self.nodePort) || self.nodePort == 0 || (has(self.spec) && has(self.spec.type) && self.spec.type in ['NodePort', 'LoadBalancer'])",fieldPath=".nodePort",message="service.nodePort needs a Service of type NodePort or LoadBalancer; set service.spec.type, or remove nodePort"
type AccountingService struct {
	ServiceTemplate `json:",inline"`

	// port of the Service, on which slurmctld reaches slurmdbd.
	// +optional
	// +kubebuilder:default=6819
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// AccountingStatus is the observed state of an accounting service.
type AccountingStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// slurmUser is the user that slurmdbd runs as.
	// +optional
	SlurmUser *SlurmUser `json:"slurmUser,omitempty"`

	// conditions of the accounting service: Ready, Available, Progressing, Degraded and DatabaseReachable.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// JWTKey returns the reference to the HS256 key under either of its names, or nil if the key is to be generated.
func (s *AccountingSpec) JWTKey() *SecretKeyReference {
	if s.JWTKeyRef != nil {
		return s.JWTKeyRef
	}
	return s.JWTHS256KeyRef
}
