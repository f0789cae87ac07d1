package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Token is a JWT for one Slurm user, kept in a Secret and renewed before it expires.
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories={slurm},shortName={jwt}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.spec.username`
// +kubebuilder:printcolumn:name="IAT",type=date,priority=1,JSONPath=`.status.issuedAt`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expiresAt`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Token struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the token.
	// +required
	Spec TokenSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state of the token.
	// +optional
	Status TokenStatus `json:"status,omitempty,omitzero"`
}

// TokenList is a list of Tokens.
// +kubebuilder:object:root=true
type TokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Token `json:"items"`
}

// TokenSpec is the desired state of a token.
// +kubebuilder:validation:XValidation:rule="has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)",fieldPath=".jwtKeyRef",message="spec.jwtKeyRef is required, because a token must be signed; name the Secret that holds the cluster's HS256 key"
// +kubebuilder:validation:XValidation:rule="!has(self.jwtKeyRef) || !has(self.jwtHs256KeyRef) || (self.jwtKeyRef.name == self.jwtHs256KeyRef.name && self.jwtKeyRef.key == self.jwtHs256KeyRef.key)",fieldPath=".jwtHs256KeyRef",message="spec.jwtHs256KeyRef is the older name of spec.jwtKeyRef and must not differ from it; remove jwtHs256KeyRef"
// +kubebuilder:validation:XValidation:rule="!(has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)) || !(has(oldSelf.jwtKeyRef) || has(oldSelf.jwtHs256KeyRef)) || ((has(self.jwtKeyRef) ? self.jwtKeyRef.name : self.jwtHs256KeyRef.name) == (has(oldSelf.jwtKeyRef) ? oldSelf.jwtKeyRef.name : oldSelf.jwtHs256KeyRef.name) && (has(self.jwtKeyRef) ? self.jwtKeyRef.key : self.jwtHs256KeyRef.key) == (has(oldSelf.jwtKeyRef) ? oldSelf.jwtKeyRef.key : oldSelf.jwtHs256KeyRef.key))",fieldPath=".jwtKeyRef",message="spec.jwtKeyRef is immutable, because the token would be for another cluster; put the old value back, or create another Token"
// +kubebuilder:validation:XValidation:rule="(has(self.secretRef) && has(self.secretRef.name)) || self.username.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",fieldPath=".secretRef",message="spec.secretRef.name is required for this spec.username, because the default name <token>-jwt-<username> would not be a valid name of a Secret; set secretRef.name"
type TokenSpec struct {
	// jwtKeyRef selects the HS256 key of auth/jwt that signs the token; required and immutable.
	// +optional
	JWTKeyRef *SecretKeyReference `json:"jwtKeyRef,omitempty"`

	// jwtHs256KeyRef is the older name of jwtKeyRef. If both are set, they must be equal.
	// +optional
	JWTHS256KeyRef *SecretKeyReference `json:"jwtHs256KeyRef,omitempty"`

	// username is the Slurm user that the token authenticates.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^ :/]+$') && !self.matches('[\\\\n\\\\r\\\\t]')",message="spec.username must not contain blanks, line breaks, ':' or '/'; use the user's login name"
	Username string `json:"username,omitempty"`

	// lifetime of the token. The token is renewed well before it expires.
	// +optional
	// +kubebuilder:default="15m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('1m')",message="spec.lifetime must be a duration of at least 1m; use for example 15m or 24h"
	Lifetime metav1.Duration `json:"lifetime,omitempty,omitzero"`

	// refresh renews the token before it expires. If false, the Secret is immutable and the token expires at the end of
	// its lifetime.
	// +optional
	// +kubebuilder:default=true
	Refresh *bool `json:"refresh,omitempty"`

	// secretRef selects the Secret that holds the token. Defaults to the Secret <token>-jwt-<username>, key SLURM_JWT.
	// +optional
	SecretRef *TokenSecret `json:"secretRef,omitempty"`
}

// TokenSecret selects the Secret that holds a token.
// +structType=atomic
type TokenSecret struct {
	// name of the Secret, in the same namespace. Defaults to <token>-jwt-<username>.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="spec.secretRef.name must be a valid name of a Secret, of a-z, 0-9, '-' and '.'; remove other characters"
	Name string `json:"name,omitempty"`

	// key in the Secret's data.
	// +optional
	// +kubebuilder:default=SLURM_JWT
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._0-9A-Za-z]+$')",message="spec.secretRef.key must be a valid key of a Secret, of letters, digits, '-', '_' and '.'; remove other characters"
	Key string `json:"key,omitempty"`

	// optional is accepted for compatibility with core/v1 SecretKeySelector and ignored: the Secret is always created.
	// +optional
	Optional *bool `json:"optional,omitempty"`
}

// TokenStatus is the observed state of a token.
type TokenStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the token: Ready, Available, Progressing and Degraded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// issuedAt is when the token in the Secret was signed.
	// +optional
	IssuedAt *metav1.Time `json:"issuedAt,omitempty"`

	// expiresAt is when the token in the Secret expires. Addition.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// JWTKey returns the reference to the signing key under either of its names.
func (s *TokenSpec) JWTKey() *SecretKeyReference {
	if s.JWTKeyRef != nil {
		return s.JWTKeyRef
	}
	return s.JWTHS256KeyRef
}
