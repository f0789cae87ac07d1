package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Controller is a Slurm cluster: its slurmctld, its configuration and its saved state.
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories={slurm},shortName={slurmctld,cluster,clusters}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.clusterName`
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.isReady`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.slurmVersion`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes.total`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.jobs.running`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.jobs.pending`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 40",fieldPath=".metadata",message="metadata.name must be a DNS label (a-z, 0-9 and '-') of at most 40 characters, because host and Service names are made from it; choose a shorter or simpler name"
type Controller struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the cluster.
	// +optional
	// +kubebuilder:default={}
	Spec ControllerSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state of the cluster.
	// +optional
	Status ControllerStatus `json:"status,omitempty,omitzero"`
}

// ControllerList is a list of Controllers.
// +kubebuilder:object:root=true
type ControllerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Controller `json:"items"`
}

// ControllerSpec is the desired state of a Slurm cluster.
// +kubebuilder:validation:XValidation:rule="(has(self.clusterName) && size(self.clusterName) > 0 ? self.clusterName : '-') == (has(oldSelf.clusterName) && size(oldSelf.clusterName) > 0 ? oldSelf.clusterName : '-')",fieldPath=".clusterName",message="spec.clusterName is immutable, because the saved state and the accounting database are bound to it; put the old value back, or create another Controller"
// +kubebuilder:validation:XValidation:rule="!(has(self.external) && self.external) || has(self.externalConfig)",fieldPath=".externalConfig",message="spec.externalConfig is required when spec.external is true; set externalConfig.host to where slurmctld runs"
// +kubebuilder:validation:XValidation:rule="!(has(self.external) && self.external) || has(self.slurmKeyRef)",fieldPath=".slurmKeyRef",message="spec.slurmKeyRef is required when spec.external is true, because the key of a running cluster cannot be generated; name the Secret that holds its slurm.key"
// +kubebuilder:validation:XValidation:rule="!(has(self.external) && self.external) || has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)",fieldPath=".jwtKeyRef",message="spec.jwtKeyRef is required when spec.external is true, because the key of a running cluster cannot be generated; name the Secret that holds its jwt_hs256.key"
// +kubebuilder:validation:XValidation:rule="!(has(self.external) && self.external) || !(has(self.ha) && has(self.ha.enabled) && self.ha.enabled)",fieldPath=".ha.enabled",message="spec.ha.enabled has no meaning when spec.external is true, because the operator runs no slurmctld then; set one of the two to false"
// +kubebuilder:validation:XValidation:rule="!(has(self.ha) && has(self.ha.enabled) && self.ha.enabled) || self.persistence.enabled",fieldPath=".persistence.enabled",message="spec.persistence.enabled must be true when spec.ha.enabled is true, because a backup slurmctld takes over from the saved state; enable persistence on a ReadWriteMany volume"
// +kubebuilder:validation:XValidation:rule="!has(self.jwtKeyRef) || !has(self.jwtHs256KeyRef) || (self.jwtKeyRef.name == self.jwtHs256KeyRef.name && self.jwtKeyRef.key == self.jwtHs256KeyRef.key)",fieldPath=".jwtHs256KeyRef",message="spec.jwtHs256KeyRef is the older name of spec.jwtKeyRef and must not differ from it; remove jwtHs256KeyRef"
type ControllerSpec struct {
	// clusterName is Slurm's ClusterName: at most 40 letters, digits, '_' and '-'; immutable. Defaults to
	// <namespace>_<name>, which must not exceed 40 characters either. Slurm converts upper case letters to lower case.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[0-9A-Za-z][-_0-9A-Za-z]*$')",message="spec.clusterName must consist of letters, digits, '_' and '-' and begin with a letter or digit, because it becomes part of table names in the accounting database; remove other characters"
	ClusterName string `json:"clusterName,omitempty"`

	// slurmKeyRef selects the shared key of auth/slurm. Addition: optional. Defaults to the key of the Accounting in
	// accountingRef if there is one, otherwise to a key that is generated once in the Secret <name>-auth-slurm, key
	// slurm.key.
	// +optional
	SlurmKeyRef *SecretKeyReference `json:"slurmKeyRef,omitempty"`

	// jwtKeyRef selects the HS256 key of auth/jwt. Addition: optional. Defaults to the key of the Accounting in
	// accountingRef if there is one, otherwise to jwt_hs256.key in the Secret <name>-auth-jwths256, which is generated
	// once, unless the Secret <name>-auth-jwt has a key.
	// +optional
	JWTKeyRef *SecretKeyReference `json:"jwtKeyRef,omitempty"`

	// jwtHs256KeyRef is the older name of jwtKeyRef. If both are set, they must be equal.
	// +optional
	JWTHS256KeyRef *SecretKeyReference `json:"jwtHs256KeyRef,omitempty"`

	// jwksKeyRef selects a JSON Web Key Set with additional keys that auth/jwt accepts.
	// +optional
	JWKSKeyRef *ConfigMapKeyReference `json:"jwksKeyRef,omitempty"`

	// accountingRef names the Accounting that the cluster uses. If unset, the cluster has no accounting.
	// +optional
	AccountingRef *ObjectReference `json:"accountingRef,omitempty"`

	// external means that slurmctld runs outside Kubernetes, at externalConfig. The operator then runs no slurmctld and
	// connects the pods to the external one.
	// +optional
	// +kubebuilder:default=false
	External bool `json:"external,omitempty"`

	// externalConfig is the address of an external slurmctld.
	// +optional
	ExternalConfig *ExternalConfig `json:"externalConfig,omitempty"`

	// ha configures backup slurmctlds.
	// +optional
	// +kubebuilder:default={}
	HA ControllerHA `json:"ha,omitempty,omitzero"`

	// slurmctld is merged onto the slurmctld container.
	// +optional
	Slurmctld ContainerFragment `json:"slurmctld,omitempty,omitzero"`

	// reconfigure is merged onto the sidecar container that makes slurmctld load a new configuration.
	// +optional
	Reconfigure ContainerFragment `json:"reconfigure,omitempty,omitzero"`

	// logfile is merged onto the sidecar container that prints slurmctld's log file, if there is one.
	// +optional
	Logfile ContainerFragment `json:"logfile,omitempty,omitzero"`

	// inplaceReconfigure has no effect: every change that slurmctld can load without a restart is applied in place. The
	// field is accepted so that existing manifests apply.
	// +optional
	// +kubebuilder:default=false
	InplaceReconfigure bool `json:"inplaceReconfigure,omitempty"`

	// template customizes slurmctld's pods.
	// +optional
	Template PodTemplate `json:"template,omitempty,omitzero"`

	// extraConf is merged into slurm.conf line by line. Keys that the operator manages are rejected.
	// +optional
	// +kubebuilder:validation:MaxLength=524288
	ExtraConf string `json:"extraConf,omitempty"`

	// configFileRefs name ConfigMaps whose keys become files in /etc/slurm.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ConfigFileRefs []ObjectReference `json:"configFileRefs,omitempty"`

	// prologScriptRefs name ConfigMaps whose keys are scripts that slurmd runs before a job.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	PrologScriptRefs []ObjectReference `json:"prologScriptRefs,omitempty"`

	// epilogScriptRefs name ConfigMaps whose keys are scripts that slurmd runs after a job.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	EpilogScriptRefs []ObjectReference `json:"epilogScriptRefs,omitempty"`

	// prologSlurmctldScriptRefs name ConfigMaps whose keys are scripts that slurmctld runs before a job.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	PrologSlurmctldScriptRefs []ObjectReference `json:"prologSlurmctldScriptRefs,omitempty"`

	// epilogSlurmctldScriptRefs name ConfigMaps whose keys are scripts that slurmctld runs after a job.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	EpilogSlurmctldScriptRefs []ObjectReference `json:"epilogSlurmctldScriptRefs,omitempty"`

	// persistence configures the volume of slurmctld's saved state (StateSaveLocation).
	// +optional
	// +kubebuilder:default={}
	Persistence ControllerPersistence `json:"persistence,omitempty,omitzero"`

	// service customizes the Service in front of slurmctld.
	// +optional
	// +kubebuilder:default={}
	Service ControllerService `json:"service,omitempty,omitzero"`

	// metrics configures slurmctld's own OpenMetrics endpoints (Slurm 25.11 and later).
	// +optional
	// +kubebuilder:default={}
	Metrics ControllerMetrics `json:"metrics,omitempty,omitzero"`

	// maxNodeCount is Slurm's MaxNodeCount, the maximum number of Slurm nodes. Addition. Defaults to the size of the
	// NodeSets, and the nodes in extraConf, plus headroom. A value below the number of registered nodes is raised to that
	// number.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	MaxNodeCount *int32 `json:"maxNodeCount,omitempty"`

	// slurmUser is the user that slurmctld, and sackd in the cluster's LoginSets, run as. Addition. Defaults to the user
	// slurm of slurmctld's image; all images of a cluster must agree on it.
	// +optional
	SlurmUser SlurmUser `json:"slurmUser,omitempty,omitzero"`

	// configurationTrial configures the validation run of a changed configuration before the running slurmctld loads
	// it. Addition.
	// +optional
	// +kubebuilder:default={}
	ConfigurationTrial ConfigurationTrial `json:"configurationTrial,omitempty,omitzero"`

	// jobConfinement is Cgroups to confine every job to its memory, cores and devices, or None to let jobs share the
	// pod, in which one job that exceeds the pod's memory ends all the others, so that the partitions of NodeSets run one
	// job per node. Addition. If unset, a new cluster has Cgroups, unless you configure cgroups yourself with a
	// ProctrackType in extraConf or a cgroup.conf, and an existing cluster stays as it is. A change replaces all slurmd
	// pods, each when its Slurm node is drained.
	// +optional
	JobConfinement JobConfinement `json:"jobConfinement,omitempty"`

	// tokenPolicy limits the Tokens that are signed with the cluster's JWT key. Addition. If unset, a Token may be for
	// any user and lifetime. A Token that the policy forbids has no Secret; a token that was issued before stays valid
	// until it expires. The operator's own tokens are not affected.
	// +optional
	TokenPolicy *TokenPolicy `json:"tokenPolicy,omitempty"`
}

// TokenPolicy limits Tokens.
type TokenPolicy struct {
	// maxLifetime is the longest lifetime of a Token; at least 15m, the default lifetime.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('15m')",message="tokenPolicy.maxLifetime must be a duration of at least 15m, the default lifetime of a Token; use for example 1h or 24h"
	MaxLifetime *metav1.Duration `json:"maxLifetime,omitempty"`

	// allowedUsers are the only Slurm users that a Token may be for. If empty, all are allowed, except deniedUsers.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	AllowedUsers []PolicyUser `json:"allowedUsers,omitempty"`

	// deniedUsers are Slurm users that no Token may be for, even if they are in allowedUsers; upper and lower case are
	// not distinguished. A number, which Slurm reads as a UID, is then accepted as a user only if allowedUsers contains
	// it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	DeniedUsers []PolicyUser `json:"deniedUsers,omitempty"`
}

// PolicyUser is the login name of a user.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[^ :/*?]+$')",message="users of a tokenPolicy are login names without blanks, ':', '/' or wildcards; list every user"
type PolicyUser string

// JobConfinement determines how the jobs on a Slurm node are kept apart.
// +kubebuilder:validation:Enum=Cgroups;None
type JobConfinement string

const (
	// JobConfinementCgroups confines each job in cgroups.
	JobConfinementCgroups JobConfinement = "Cgroups"
	// JobConfinementNone does not confine jobs.
	JobConfinementNone JobConfinement = "None"
)

// ControllerHA configures backup slurmctlds, which take over from the saved state on a shared volume.
type ControllerHA struct {
	// enabled turns backup slurmctlds on.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// backups is the number of backup slurmctlds; Slurm allows up to nine.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Backups int32 `json:"backups,omitempty"`
}

// ControllerPersistence configures the volume of slurmctld's saved state.
type ControllerPersistence struct {
	// enabled keeps the state on a PersistentVolumeClaim. If false, slurmctld loses all jobs when it restarts.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`

	// existingClaim names an existing PersistentVolumeClaim to use. The operator then creates none, and the fields of
	// the PersistentVolumeClaim's spec are ignored.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ExistingClaim string `json:"existingClaim,omitempty"`

	corev1.PersistentVolumeClaimSpec `json:",inline"`
}

// ControllerService customizes the Service in front of slurmctld.
// +kubebuilder:validation:XValidation:rule="!has(self.nodePort) || self.nodePort == 0 || (has(self.spec) && has(self.spec.type) && self.spec.type in ['NodePort', 'LoadBalancer'])",fieldPath=".nodePort",message="service.nodePort needs a Service of type NodePort or LoadBalancer; set service.spec.type, or remove nodePort"
type ControllerService struct {
	ServiceTemplate `json:",inline"`

	// port of the Service, on which clients reach slurmctld.
	// +optional
	// +kubebuilder:default=6817
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// ControllerMetrics configures slurmctld's own metrics.
type ControllerMetrics struct {
	// enabled turns slurmctld's metrics endpoints on.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// serviceMonitor configures a Prometheus Operator ServiceMonitor for slurmctld's metrics.
	// +optional
	// +kubebuilder:default={}
	ServiceMonitor ServiceMonitor `json:"serviceMonitor,omitempty,omitzero"`
}

// ServiceMonitor configures a ServiceMonitor of the Prometheus Operator.
type ServiceMonitor struct {
	// enabled creates a ServiceMonitor as soon as the CRDs of the Prometheus Operator are installed.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// labels are added to the ServiceMonitor. Prometheus usually selects ServiceMonitors by label.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations are added to the ServiceMonitor.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// interval between two scrapes, such as 2m. Defaults to 1m: each scrape locks slurmctld.
	// +optional
	Interval PrometheusDuration `json:"interval,omitempty"`

	// scrapeTimeout after which a scrape fails, such as 10s. Defaults to that of Prometheus.
	// +optional
	ScrapeTimeout PrometheusDuration `json:"scrapeTimeout,omitempty"`

	// endpoints that are scraped.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:default={{path: "/metrics/jobs"}, {path: "/metrics/nodes"}, {path: "/metrics/partitions"}, {path: "/metrics/scheduler"}}
	Endpoints []MetricsEndpoint `json:"endpoints,omitempty"`
}

// MetricsEndpoint is one metrics path of slurmctld.
type MetricsEndpoint struct {
	// path of the endpoint, such as /metrics/jobs.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^ ?#]*$')",message="endpoints[].path must be a URL path that begins with '/'; use for example /metrics/jobs"
	Path string `json:"path,omitempty"`

	// interval between two scrapes of this endpoint. Defaults to that of the ServiceMonitor.
	// +optional
	Interval PrometheusDuration `json:"interval,omitempty"`

	// scrapeTimeout of this endpoint. Defaults to that of the ServiceMonitor.
	// +optional
	ScrapeTimeout PrometheusDuration `json:"scrapeTimeout,omitempty"`
}

// PrometheusDuration is a duration in Prometheus' notation, such as 30s or 1h30m.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^([0-9]+(ms|[smhdwy]))+$')",message="must be a duration in Prometheus' notation; use for example 30s or 1m30s"
type PrometheusDuration string

// ConfigurationTrial configures the validation run of a changed configuration.
type ConfigurationTrial struct {
	// enabled validates a changed configuration on a throwaway slurmctld with scratch state first. If false, a
	// configuration that slurmctld refuses is noticed only when the running slurmctld exits because of it.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
}

// JWTKey returns the reference to the HS256 key under either of its names, or nil if the key is to be generated.
func (s *ControllerSpec) JWTKey() *SecretKeyReference {
	if s.JWTKeyRef != nil {
		return s.JWTKeyRef
	}
	return s.JWTHS256KeyRef
}
