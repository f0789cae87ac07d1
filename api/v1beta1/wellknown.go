package v1beta1

import corev1 "k8s.io/api/core/v1"

// Annotations of Controllers.
const (
	// AnnotationTakeOver with the value "true" on a Controller lets this operator take over the cluster from another
	// operator that made it. A cluster whose jobs are confined needs the value TakeOverConfined. Addition.
	AnnotationTakeOver = "controller." + GroupName + "/take-over"
	// AnnotationRestAPI on a Controller is the name of the RestApi through which the operator uses Slurm; without it,
	// that is the oldest one that refers to the Controller. Addition.
	AnnotationRestAPI = "controller." + GroupName + "/rest-api"
	// AnnotationChangeDespiteJobs on a Controller lists keys of slurm.conf, separated by commas, whose change does not
	// wait until no job runs, although it costs running jobs. Addition.
	AnnotationChangeDespiteJobs = "controller." + GroupName + "/change-despite-jobs"
)

// TakeOverConfined is the value of AnnotationTakeOver that also says that the slurmds of the other operator, which
// confine jobs with cgroups, survive a reconfiguration.
const TakeOverConfined = "confined"

// Annotations of NodeSets.
const (
	// AnnotationDeleteWithoutDrain with the value "true" on a NodeSet skips the drain when the NodeSet is deleted:
	// running jobs are killed. Addition.
	AnnotationDeleteWithoutDrain = "nodeset." + GroupName + "/delete-without-drain"
	// AnnotationSlurmName is the name of a NodeSet's partition and feature in Slurm, if it has a host name prefix. The
	// operator sets it when the name is first used, and keeps that name. Addition.
	AnnotationSlurmName = "nodeset." + GroupName + "/slurm-name"
)

// Annotations of slurmd pods.
const (
	// AnnotationPodCordon with the value "true" drains the pod's Slurm node. If a user sets it, only a user removes it.
	AnnotationPodCordon = "nodeset." + GroupName + "/pod-cordon"
	// AnnotationPodCordonSource says which operator set AnnotationPodCordon, and why; without it, a user did. This
	// operator writes both together, with the value PodCordonScaleIn, and removes both together. Addition.
	AnnotationPodCordonSource = "nodeset." + GroupName + "/pod-cordon-source"
	// AnnotationPodDeletionCost is an int32; at scale-in, pods with lower values are removed first.
	AnnotationPodDeletionCost = "nodeset." + GroupName + "/pod-deletion-cost"
	// AnnotationPodDeadline is the latest end time of the pod's running jobs, in RFC 3339 format. The operator sets it.
	AnnotationPodDeadline = "nodeset." + GroupName + "/pod-deadline"
)

// Labels of slurmd and slurmctld pods.
const (
	// LabelPodName is the name of the slurmd pod.
	LabelPodName = "nodeset." + GroupName + "/pod-name"
	// LabelPodIndex is the ordinal of the slurmd pod.
	LabelPodIndex = "nodeset." + GroupName + "/pod-index"
	// LabelPodHostname is the hostname of the slurmd pod, which is its Slurm node name.
	LabelPodHostname = "nodeset." + GroupName + "/pod-hostname"
	// LabelScalingMode is the NodeSet's scaling mode.
	LabelScalingMode = "nodeset." + GroupName + "/scaling-mode"
	// LabelPodProtect marks a slurmd pod that has jobs or may get jobs; the PodDisruptionBudget selects it. It is
	// removed while the pod's Slurm node is drained and has no jobs.
	LabelPodProtect = "nodeset." + GroupName + "/pod-protect"
	// LabelActive marks the active slurmctld pod. It is informational; no Service selects by it.
	LabelActive = "controller." + GroupName + "/active"
)

// Annotations of Kubernetes nodes.
const (
	// AnnotationNodeCordonReason is the drain reason to use when the Kubernetes node is cordoned.
	AnnotationNodeCordonReason = "nodeset." + GroupName + "/node-cordon-reason"
	// AnnotationTopology is the topology of the Slurm nodes on the Kubernetes node, such as
	// topo-switch:s2,topo-block:b2.
	AnnotationTopology = "topology." + GroupName + "/spec"
	// AnnotationFeatures is a comma-separated list of features of the Slurm nodes on the Kubernetes node.
	AnnotationFeatures = "features." + GroupName + "/spec"
	// AnnotationHostnameOverride is the Slurm node name in DaemonSet mode.
	AnnotationHostnameOverride = "nodeset." + GroupName + "/hostname-override"
)

const (
	// TaintWorker may be left on a Kubernetes node by another operator that reserved it for slurmd. This operator never
	// sets it, and slurmd pods tolerate it.
	TaintWorker = "nodeset." + GroupName + "/worker"
	// PodCordonScaleIn is the value of AnnotationPodCordonSource on pods that are scaled in.
	PodCordonScaleIn = "scale-in"
	// FeaturePrefix is the prefix of Slurm features that the operator manages; it does not change other features.
	FeaturePrefix = "k8s/"
	// ReasonPrefix is the prefix of the Slurm reason of the operator's own drains; it never changes other drains.
	ReasonPrefix = "slurm-operator: "
	// PodConditionPrefix is the prefix of the pod condition types that mirror the Slurm node's state, such as
	// SlurmNodeStateIdle.
	PodConditionPrefix = "SlurmNodeState"
	// PodConditionRegistered is True while the pod's Slurm node exists, and False after it disappeared. A pod whose
	// slurmd never registered does not have this condition.
	PodConditionRegistered corev1.PodConditionType = "SlurmNodeRegistered"
)

// Finalizers.
const (
	// FinalizerDrain on a NodeSet delays its deletion until its Slurm nodes are drained and its pods are deleted.
	FinalizerDrain = "nodeset." + GroupName + "/drain"
	// FinalizerReservation may be left on a NodeSet by another operator that ran the cluster before. This operator
	// never sets it, and removes it together with its own finalizer.
	FinalizerReservation = "nodeset." + GroupName + "/reservation"
)

// Keys of the Secrets that the operator generates.
const (
	// SlurmKeyFile holds a generated auth/slurm key.
	SlurmKeyFile = "slurm.key"
	// JWTKeyFile holds a generated HS256 key.
	JWTKeyFile = "jwt_hs256.key"
	// TokenKey holds the JWT in the Secret of a Token, unless spec.secretRef.key is set.
	TokenKey = "SLURM_JWT"
)

// PodConditionType returns the type of the pod condition that mirrors a Slurm node state: SlurmNodeStateIdle for
// "Idle".
func PodConditionType(state string) corev1.PodConditionType {
	return corev1.PodConditionType(PodConditionPrefix + state)
}
