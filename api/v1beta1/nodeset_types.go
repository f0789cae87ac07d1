package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NodeSet is a set of slurmd pods. Each pod is one Slurm node.
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories={slurm},shortName={nss,slurmd}
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desired`
// +kubebuilder:printcolumn:name="Up",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.elastic.maxReplicas`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Idle",type=integer,JSONPath=`.status.slurmIdle`
// +kubebuilder:printcolumn:name="Alloc",type=integer,JSONPath=`.status.slurmAllocated`
// +kubebuilder:printcolumn:name="Down",type=integer,JSONPath=`.status.slurmDown`
// +kubebuilder:printcolumn:name="Drain",type=integer,JSONPath=`.status.slurmDrain`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Replicas",type=integer,priority=1,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 52",fieldPath=".metadata",message="metadata.name must be a DNS label (a-z, 0-9 and '-') of at most 52 characters, because pods and Slurm nodes are named <name>-<ordinal>; choose a shorter or simpler name"
// +kubebuilder:validation:XValidation:rule="!self.spec.partition.enabled || !(self.metadata.name in ['all', 'default'])",fieldPath=".spec.partition.enabled",message="spec.partition.enabled makes a partition of the NodeSet's name, but Slurm gives the names 'all' and 'default' a meaning of their own; choose another name for the NodeSet, or define the partition in the Controller's extraConf"
type NodeSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the NodeSet.
	// +required
	Spec NodeSetSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state of the NodeSet.
	// +optional
	Status NodeSetStatus `json:"status,omitempty,omitzero"`
}

// NodeSetList is a list of NodeSets.
// +kubebuilder:object:root=true
type NodeSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeSet `json:"items"`
}

// ScalingMode determines the number of pods.
// +kubebuilder:validation:Enum=StatefulSet;DaemonSet
type ScalingMode string

const (
	// ScalingModeStatefulSet runs spec.replicas pods with stable ordinals.
	ScalingModeStatefulSet ScalingMode = "StatefulSet"
	// ScalingModeDaemonSet runs one pod on every matching Kubernetes node.
	ScalingModeDaemonSet ScalingMode = "DaemonSet"
)

// PrunePolicy determines which node records the operator deletes from Slurm.
// +kubebuilder:validation:Enum=ScaledIn;Never;NodeNotFound
type PrunePolicy string

const (
	// PruneScaledIn deletes the record of a Slurm node after the operator drained it and deleted its pod, at scale-in
	// or with the NodeSet. Addition.
	PruneScaledIn PrunePolicy = "ScaledIn"
	// PruneNever deletes no node records.
	PruneNever PrunePolicy = "Never"
	// PruneNodeNotFound deletes the record of every Slurm node whose pod no longer exists.
	PruneNodeNotFound PrunePolicy = "NodeNotFound"
)

// NodeSetSpec is the desired state of a NodeSet.
// +kubebuilder:validation:XValidation:rule="has(self.volumeClaimTemplates) == has(oldSelf.volumeClaimTemplates) && (!has(self.volumeClaimTemplates) || self.volumeClaimTemplates == oldSelf.volumeClaimTemplates)",fieldPath=".volumeClaimTemplates",message="spec.volumeClaimTemplates is immutable, because the claims that exist would not follow; put the old value back, or create another NodeSet"
// +kubebuilder:validation:XValidation:rule="!has(self.template) || !has(self.template.spec) || !has(self.template.spec.hostname) || self.template.spec.hostname.matches('^[a-z0-9][-a-z0-9]{0,51}$')",fieldPath=".template.spec.hostname",message="spec.template.spec.hostname is the prefix of every pod's host name, which the ordinal completes to a DNS label; use at most 52 of a-z, 0-9 and '-', beginning with a letter or digit, or remove the field"
// +kubebuilder:validation:XValidation:rule="!has(self.elastic) || !has(self.replicas) || self.replicas == 1",fieldPath=".replicas",message="spec.replicas has no effect on an elastic NodeSet, whose pods follow the jobs; remove it (kubectl scale sets it too), and set spec.elastic.maxReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.elastic) || self.scalingMode != 'DaemonSet'",fieldPath=".elastic",message="spec.elastic cannot be combined with scalingMode DaemonSet, whose pods follow the Kubernetes nodes; remove one of them"
type NodeSetSpec struct {
	// controllerRef names the Controller of the Slurm cluster that the pods join; immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",fieldPath=".name",message="spec.controllerRef is immutable, because nodes cannot move between Slurm clusters; put the old value back, or create another NodeSet"
	ControllerRef ObjectReference `json:"controllerRef,omitempty,omitzero"`

	// replicas is the number of pods. It is ignored when scalingMode is DaemonSet, and cannot be set (other than to its
	// default) together with elastic.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	Replicas *int32 `json:"replicas,omitempty"`

	// scalingMode determines the number of pods: replicas (StatefulSet), or one pod on each Kubernetes node that
	// matches the pod template (DaemonSet).
	// +optional
	// +kubebuilder:default=StatefulSet
	ScalingMode ScalingMode `json:"scalingMode,omitempty"`

	// slurmd is merged onto the slurmd container. Its limits set the Slurm node's CPUs and memory, its device requests
	// the Slurm node's GRES. To grant privileges beyond the operator's minimal default, set securityContext.
	// +optional
	Slurmd ContainerFragment `json:"slurmd,omitempty,omitzero"`

	// logfile is merged onto the sidecar container that prints slurmd's log file, if there is one.
	// +optional
	Logfile ContainerFragment `json:"logfile,omitempty,omitzero"`

	// ssh configures an sshd next to slurmd, for users with a running job on the Slurm node.
	// +optional
	// +kubebuilder:default={}
	SSH NodeSetSSH `json:"ssh,omitempty,omitzero"`

	// template customizes the pods. spec.hostname, if set, is a prefix: the pod with ordinal 3 is the Slurm node
	// <hostname>3 instead of <name>-3.
	// +optional
	Template PodTemplate `json:"template,omitempty,omitzero"`

	// extraConf holds node parameters for slurmd's --conf option, such as "Gres=gpu:4 Weight=10". Line breaks count as
	// spaces. Parameters set here take precedence over those that the operator derives from the pod.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	ExtraConf string `json:"extraConf,omitempty"`

	// partition configures the NodeSet's own partition.
	// +optional
	// +kubebuilder:default={}
	Partition NodeSetPartition `json:"partition,omitempty,omitzero"`

	// volumeClaimTemplates are templates of PVCs, which are created for every ordinal; immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, self.exists_one(d, c.metadata.name == d.metadata.name))",message="spec.volumeClaimTemplates[].metadata.name must be unique within the NodeSet; rename one of the templates"
	VolumeClaimTemplates []VolumeClaimTemplate `json:"volumeClaimTemplates,omitempty"`

	// updateStrategy determines how a changed template is rolled out. A pod is never replaced before its Slurm node is
	// drained.
	// +optional
	// +kubebuilder:default={type: "RollingUpdate", rollingUpdate: {maxUnavailable: "25%"}}
	UpdateStrategy NodeSetUpdateStrategy `json:"updateStrategy,omitempty,omitzero"`

	// revisionHistoryLimit is the number of old revisions to keep for a rollback.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// persistentVolumeClaimRetentionPolicy determines when the PVCs of volumeClaimTemplates are deleted.
	// +optional
	// +kubebuilder:default={}
	PersistentVolumeClaimRetentionPolicy PVCRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty,omitzero"`

	// minReadySeconds is how long a pod must be ready before it counts as available.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// ordinalPadding is the number of digits to which ordinals are zero-padded: with 3, pod 7 is <name>-007.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9
	OrdinalPadding int32 `json:"ordinalPadding,omitempty"`

	// pinToNode pins each ordinal to the Kubernetes node on which it first ran.
	// +optional
	// +kubebuilder:default=false
	PinToNode bool `json:"pinToNode,omitempty"`

	// workloadDisruptionProtection covers pods that have jobs or may get jobs with a PodDisruptionBudget: the eviction
	// API refuses to evict them. A pod can be evicted once its Slurm node is drained and has no jobs.
	// +optional
	// +kubebuilder:default=true
	WorkloadDisruptionProtection *bool `json:"workloadDisruptionProtection,omitempty"`

	// pruneSlurmNodeRecords determines which records of Slurm nodes without a pod are deleted: those that the operator
	// itself drained and removed (ScaledIn), none (Never), or all (NodeNotFound). Records that were drained or marked
	// as failing by anyone but the operator, and reserved ones, are never deleted.
	// +optional
	// +kubebuilder:default=ScaledIn
	PruneSlurmNodeRecords PrunePolicy `json:"pruneSlurmNodeRecords,omitempty"`

	// oversubscribeNode allows several slurmd pods on one Kubernetes node.
	// +optional
	// +kubebuilder:default=false
	OversubscribeNode bool `json:"oversubscribeNode,omitempty"`

	// taintKubeNodes is accepted and ignored. Earlier versions of the API used it to taint the Kubernetes nodes of the
	// NodeSet.
	// +optional
	TaintKubeNodes *bool `json:"taintKubeNodes,omitempty"`

	// registrationTimeout is how long slurmd may take to register with Slurm after its container started. After that,
	// the NodeSet is Degraded and a rollout stops. Addition.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('10s')",message="spec.registrationTimeout must be a duration of at least 10s; use for example 5m"
	RegistrationTimeout metav1.Duration `json:"registrationTimeout,omitempty,omitzero"`

	// drainOnNodeConditions drains a Slurm node while its Kubernetes node has one of these conditions, and undrains it
	// afterwards. Addition.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +listMapKey=status
	// +kubebuilder:validation:MaxItems=32
	DrainOnNodeConditions []NodeConditionRule `json:"drainOnNodeConditions,omitempty"`

	// drainOnNodeTaints drains a Slurm node while its Kubernetes node has one of these taints, and undrains it afterwards.
	// Defaults to the taints of Kubernetes nodes that are about to be reclaimed or removed, as set by Karpenter,
	// cluster-autoscaler, aws-node-termination-handler and GKE; an empty list disables that. Addition.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=32
	DrainOnNodeTaints []NodeTaintRule `json:"drainOnNodeTaints,omitzero"`

	// nodeLabels maps labels of the Kubernetes node to features and topology of the Slurm node. Addition.
	// +optional
	NodeLabels *NodeLabelRules `json:"nodeLabels,omitempty"`

	// gres maps device requests of the pod to GRES, in addition to the operator's built-in table (GPUs of the usual
	// vendors), over which it takes precedence. Addition.
	// +optional
	// +listType=map
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=32
	Gres []GresRule `json:"gres,omitempty"`

	// cgroupAccess is how slurmd gets writable cgroups, if the Controller's jobConfinement is Cgroups. Addition.
	// Defaults to Remount.
	// +optional
	CgroupAccess CgroupAccess `json:"cgroupAccess,omitempty"`

	// reservedMemory is the part of the pod's memory limit that jobs cannot get: for slurmd, sshd, and files in memory
	// that outlive their job. Addition. Defaults to 128Mi and 1 % of the limit, at most half of it.
	// +optional
	ReservedMemory *resource.Quantity `json:"reservedMemory,omitempty"`

	// elastic makes the number of pods follow the jobs, instead of replicas. The limits of slurmd's container, or of the
	// pod, must set CPU and memory: they describe Slurm nodes that have no pod yet. Addition.
	// +optional
	Elastic *NodeSetElastic `json:"elastic,omitempty"`
}

// CgroupAccess is how slurmd gets writable cgroups.
// +kubebuilder:validation:Enum=Remount;RuntimeClass;Privileged
type CgroupAccess string

const (
	// CgroupAccessRemount lets slurmd's container remount its cgroups with SYS_ADMIN, which it gives up before slurmd
	// starts. Needs a namespace with the Pod Security level privileged.
	CgroupAccessRemount CgroupAccess = "Remount"
	// CgroupAccessRuntimeClass relies on the RuntimeClass in template.spec.runtimeClassName to mount cgroups writable,
	// in containerd with cgroup_writable.
	CgroupAccessRuntimeClass CgroupAccess = "RuntimeClass"
	// CgroupAccessPrivileged runs slurmd's container as privileged, with all devices of the Kubernetes node.
	CgroupAccessPrivileged CgroupAccess = "Privileged"
)

// NodeSetSSH configures an sshd next to slurmd.
type NodeSetSSH struct {
	// enabled runs sshd.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// extraSshdConfig is added to sshd_config before the operator's own lines, because sshd uses the first value of a
	// setting. Match blocks are added after them.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	ExtraSshdConfig string `json:"extraSshdConfig,omitempty"`

	// sssdConfRef selects an sssd.conf. If unset, only local accounts exist.
	// +optional
	SSSDConfRef *SecretKeyReference `json:"sssdConfRef,omitempty"`
}

// NodeSetPartition configures the NodeSet's own partition.
type NodeSetPartition struct {
	// enabled creates the partition.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// config holds the partition's parameters on one line, such as "Default=YES MaxTime=UNLIMITED".
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:validation:XValidation:rule="!self.trim().matches('[\\\\n\\\\r]')",message="spec.partition.config must be one line, because it ends a line of slurm.conf; join the lines with blanks"
	Config string `json:"config,omitempty"`
}

// UpdateStrategyType is the type of an update strategy.
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete;ScheduledUpdate
type UpdateStrategyType string

const (
	// RollingUpdate replaces pods a few at a time.
	RollingUpdate UpdateStrategyType = "RollingUpdate"
	// OnDelete replaces a pod only after a user deleted it.
	OnDelete UpdateStrategyType = "OnDelete"
	// ScheduledUpdate replaces pods within a Slurm reservation.
	ScheduledUpdate UpdateStrategyType = "ScheduledUpdate"
)

// NodeSetUpdateStrategy determines how a changed template is rolled out.
// +kubebuilder:validation:XValidation:rule="self.type != 'ScheduledUpdate' || (has(self.scheduledUpdate) && has(self.scheduledUpdate.startTime))",fieldPath=".scheduledUpdate",message="updateStrategy.scheduledUpdate.startTime is required when updateStrategy.type is ScheduledUpdate; say when the reservation begins, such as 2030-01-31T22:00:00Z"
type NodeSetUpdateStrategy struct {
	// type of the strategy.
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type UpdateStrategyType `json:"type,omitempty"`

	// rollingUpdate configures the type RollingUpdate.
	// +optional
	RollingUpdate *NodeSetRollingUpdate `json:"rollingUpdate,omitempty"`

	// scheduledUpdate configures the type ScheduledUpdate.
	// +optional
	ScheduledUpdate *NodeSetScheduledUpdate `json:"scheduledUpdate,omitempty"`
}

// NodeSetRollingUpdate configures the strategy RollingUpdate.
type NodeSetRollingUpdate struct {
	// maxUnavailable is the maximum number of pods that may be unavailable for any reason: a number, or a percentage of
	// the desired pods, rounded up.
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XValidation:rule="type(self) == string ? self.matches('^([1-9][0-9]?|100)%$') : (self >= 1 && self <= 65536)",message="rollingUpdate.maxUnavailable must be at least 1, or a percentage from 1% to 100%, because with 0 no pod could ever be updated; to hold updates back use type OnDelete"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// NodeSetScheduledUpdate configures the strategy ScheduledUpdate.
type NodeSetScheduledUpdate struct {
	// startTime of the reservation, in RFC 3339 format.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$`
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// duration of the reservation.
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('1m')",message="scheduledUpdate.duration must be a duration of at least 1m; use for example 30m"
	Duration metav1.Duration `json:"duration,omitempty,omitzero"`

	// flags of the reservation in addition to the operator's own, as Slurm writes them, such as IGNORE_JOBS.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+$`
	Flags []string `json:"flags,omitempty"`
}
