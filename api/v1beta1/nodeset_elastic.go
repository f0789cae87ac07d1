package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeSetElastic makes the number of pods follow the jobs. Slurm has a record for each of the maxReplicas Slurm nodes
// and decides which of them a job needs; exactly these get a pod. A Slurm node that stays idle is powered down, and its
// pod deleted.
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",message="spec.elastic.minReplicas must not be greater than maxReplicas; lower it, or raise maxReplicas"
// +kubebuilder:validation:XValidation:rule="self.warmReplicas <= self.maxReplicas",fieldPath=".warmReplicas",message="spec.elastic.warmReplicas must not be greater than maxReplicas; lower it, or raise maxReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.schedules) || self.schedules.all(schedule, schedule.warmReplicas <= self.maxReplicas)",fieldPath=".schedules",message="spec.elastic.schedules[].warmReplicas must not be greater than maxReplicas; lower it, or raise maxReplicas"
type NodeSetElastic struct {
	// maxReplicas is the maximum number of pods, and the number of Slurm nodes that users see.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	MaxReplicas int32 `json:"maxReplicas,omitempty"`

	// minReplicas is the number of Slurm nodes that always stay up.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	MinReplicas int32 `json:"minReplicas"`

	// warmReplicas is the number of idle Slurm nodes that are kept up, so that small jobs start at once.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	WarmReplicas int32 `json:"warmReplicas"`

	// schedules keep more idle Slurm nodes up at certain times of the week. The largest number applies: of warmReplicas,
	// and of the schedules whose time it is.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Schedules []ElasticSchedule `json:"schedules,omitempty"`

	// idleTimeout is how long a Slurm node must be idle before it is powered down.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('10s')",message="spec.elastic.idleTimeout must be a duration of at least 10s; use for example 10m"
	IdleTimeout metav1.Duration `json:"idleTimeout,omitempty,omitzero"`

	// startTimeout is how long the pods for a job may take until all of their Slurm nodes have registered. After that,
	// all of them are given up, and the job returns to the queue.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('30s') && duration(self) <= duration('24h')",message="spec.elastic.startTimeout must be a duration from 30s to 24h; use for example 10m"
	StartTimeout metav1.Duration `json:"startTimeout,omitempty,omitzero"`

	// capacityBackoff is how long Slurm uses no more nodes than Kubernetes could place, after pods were given up because
	// Kubernetes had no room for them.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('10s')",message="spec.elastic.capacityBackoff must be a duration of at least 10s; use for example 10m"
	CapacityBackoff metav1.Duration `json:"capacityBackoff,omitempty,omitzero"`

	// provisioning asks cluster-autoscaler for room for all pods of a job, before any of them is created. Without the CRD
	// of ProvisioningRequests (autoscaling.x-k8s.io/v1) it has no effect.
	// +optional
	Provisioning *ElasticProvisioning `json:"provisioning,omitempty"`
}

// ElasticProvisioning describes the ProvisioningRequest that precedes the pods of a job.
type ElasticProvisioning struct {
	// className is the class of the ProvisioningRequests. check-capacity.autoscaling.x-k8s.io waits until existing
	// Kubernetes nodes have room for all pods; best-effort-atomic-scale-up.autoscaling.x-k8s.io adds Kubernetes nodes for
	// all pods, or none.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="spec.elastic.provisioning.className must be the name of a class; use for example best-effort-atomic-scale-up.autoscaling.x-k8s.io"
	ClassName string `json:"className,omitempty"`

	// parameters of the class, such as noRetry: "true" of check-capacity.autoscaling.x-k8s.io.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Parameters map[string]ProvisioningParameter `json:"parameters,omitempty"`
}

// ProvisioningParameter is the value of a parameter of a provisioning class.
// +kubebuilder:validation:MaxLength=255
type ProvisioningParameter string

// ElasticSchedule keeps idle Slurm nodes up at certain times of the week.
// +kubebuilder:validation:XValidation:rule="self.from != self.to",fieldPath=".to",message="schedules[].to must differ from schedules[].from; for whole days, use from 00:00 to 24:00"
type ElasticSchedule struct {
	// warmReplicas is the number of idle Slurm nodes that are kept up.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	WarmReplicas int32 `json:"warmReplicas,omitempty"`

	// days are those on which the time begins. Defaults to all days.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	Days []Weekday `json:"days,omitempty"`

	// from is when Slurm nodes begin to be powered up, such as 07:00.
	// +required
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="schedules[].from must be a time from 00:00 to 23:59; use for example 07:00"
	From string `json:"from,omitempty"`

	// to is when Slurm nodes are no longer kept up, such as 19:00, or 24:00. If it is earlier than from, it is on the next
	// day.
	// +required
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$')",message="schedules[].to must be a time from 00:00 to 24:00; use for example 19:00"
	To string `json:"to,omitempty"`

	// timeZone of from and to, as in the IANA time zone database, such as Europe/Berlin.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+/-]*$') && self != 'Local'",message="schedules[].timeZone must be a name of the IANA time zone database; use for example Europe/Berlin, or UTC"
	TimeZone string `json:"timeZone,omitempty"`
}

// Weekday is a day of the week.
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Weekday string

// NodeSetElasticStatus counts the Slurm nodes of an elastic NodeSet by why they are up. Each that is up counts once;
// those that are powering down are not up.
type NodeSetElasticStatus struct {
	// poweringUp is the number of Slurm nodes that are powering up.
	// +optional
	PoweringUp int32 `json:"poweringUp"`

	// busy is the number of Slurm nodes that are up and have jobs.
	// +optional
	Busy int32 `json:"busy"`

	// minimum is the number of idle Slurm nodes that are up because of minReplicas.
	// +optional
	Minimum int32 `json:"minimum"`

	// warm is the number of further idle Slurm nodes that are up because of warmReplicas.
	// +optional
	Warm int32 `json:"warm"`

	// scheduled is the number of further idle Slurm nodes that are up because of schedules.
	// +optional
	Scheduled int32 `json:"scheduled"`

	// idle is the number of other idle Slurm nodes, which are powered down after idleTimeout.
	// +optional
	Idle int32 `json:"idle"`

	// closed is the number of Slurm nodes that are up, have no jobs and take none: they are drained or down.
	// +optional
	Closed int32 `json:"closed"`

	// poweringDown is the number of Slurm nodes that are powering down.
	// +optional
	PoweringDown int32 `json:"poweringDown"`

	// jobs are those with the lowest IDs that keep Slurm nodes up: at most 10, and of several jobs on a Slurm node the one
	// that ends last. It changes at most once per minute.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Jobs []int64 `json:"jobs,omitempty"`

	// jobsChangedAt is when jobs last changed.
	// +optional
	JobsChangedAt *metav1.Time `json:"jobsChangedAt,omitempty"`

	// provisioningFailure is the last ProvisioningRequest that failed, with its own message, while Slurm nodes are closed
	// because of it.
	// +optional
	ProvisioningFailure string `json:"provisioningFailure,omitempty"`
}

// MaxElasticJobs is the maximum length of status.elastic.jobs.
const MaxElasticJobs = 10
