package v1beta1

import corev1 "k8s.io/api/core/v1"

// Annotations of NodeSets.
const (
	// AnnotationDeleteWithoutDrain on a NodeSet, with the value "true", waives the drain before its pods are deleted
	// together with it: running jobs are lost. Addition.
	AnnotationDeleteWithoutDrain = "nodeset." + GroupName + "/delete-without-drain"
)

// Annotations of slurmd pods.
const (
	// AnnotationPodCordon with the value "true" says that the pod's Slurm node is to be drained. Set by a person it stays
	// until that person removes it.
	AnnotationPodCordon = "nodeset." + GroupName + "/pod-cordon"
	// AnnotationPodDeletionCost is an int32; the pod with the lower one is removed first at scale-in.
	AnnotationPodDeletionCost = "nodeset." + GroupName + "/pod-deletion-cost"
	// AnnotationPodDeadline is the RFC 3339 time at which the pod's running jobs end at the latest. The operator writes
	// it.
	AnnotationPodDeadline = "nodeset." + GroupName + "/pod-deadline"
)

// Labels of slurmd and slurmctld pods.
const (
	// LabelPodName is the name of the slurmd pod.
	LabelPodName = "nodeset." + GroupName + "/pod-name"
	// LabelPodIndex is the ordinal of the slurmd pod.
	LabelPodIndex = "nodeset." + GroupName + "/pod-index"
	// LabelPodHostname is the host name of the slurmd pod, which is its Slurm node name.
	LabelPodHostname = "nodeset." + GroupName + "/pod-hostname"
	// LabelScalingMode is the NodeSet's scaling mode.
	LabelScalingMode = "nodeset." + GroupName + "/scaling-mode"
	// LabelPodProtect marks a slurmd pod that has running jobs or may get some; the PodDisruptionBudget selects it. It is
	// removed while the pod's Slurm node is drained and empty.
	LabelPodProtect = "nodeset." + GroupName + "/pod-protect"
	// LabelActive marks the active slurmctld pod. It informs people and tools; no Service selects by it.
	LabelActive = "controller." + GroupName + "/active"
)

// Annotations of Kubernetes nodes.
const (
	// AnnotationNodeCordonReason is the drain reason to use when the Kubernetes node is cordoned.
	AnnotationNodeCordonReason = "nodeset." + GroupName + "/node-cordon-reason"
	// AnnotationTopology is the Slurm dynamic topology of the node, such as topo-switch:s2,topo-block:b2.
	AnnotationTopology = "topology." + GroupName + "/spec"
	// AnnotationFeatures lists Slurm features of the node, separated by commas.
	AnnotationFeatures = "features." + GroupName + "/spec"
	// AnnotationHostnameOverride is the Slurm name of the node in DaemonSet mode.
	AnnotationHostnameOverride = "nodeset." + GroupName + "/hostname-override"
)

const (
	// FeaturePrefix begins every Slurm feature that the operator owns; it leaves other features alone.
	FeaturePrefix = "k8s/"
	// ReasonPrefix begins the Slurm reason of every drain that is ours; any other drain is never touched.
	ReasonPrefix = "slurm-operator: "
	// PodConditionPrefix begins the type of the pod conditions that mirror the Slurm node's state, such as
	// SlurmNodeStateIdle.
	PodConditionPrefix = "SlurmNodeState"
	// PodConditionRegistered is True while Slurm has the pod's node, and False after Slurm has lost it. A pod whose slurmd
	// never registered has no such condition.
	PodConditionRegistered corev1.PodConditionType = "SlurmNodeRegistered"
)

// Finalizers.
const (
	// FinalizerDrain on a NodeSet holds its deletion until its Slurm nodes are drained and its pods gone.
	FinalizerDrain = "nodeset." + GroupName + "/drain"
)

// Keys of the Secrets that the operator generates.
const (
	// SlurmKeyFile is the key under which a generated auth/slurm key is kept.
	SlurmKeyFile = "slurm.key"
	// JWTKeyFile is the key under which a generated HS256 key is kept.
	JWTKeyFile = "jwt_hs256.key"
	// TokenKey is the key under which a Token's Secret holds the JWT unless spec.secretRef.key says otherwise.
	TokenKey = "SLURM_JWT"
)

// PodConditionType returns the type of the pod condition that mirrors a Slurm node state, such as SlurmNodeStateIdle for
// "Idle".
func PodConditionType(state string) corev1.PodConditionType {
	return corev1.PodConditionType(PodConditionPrefix + state)
}
