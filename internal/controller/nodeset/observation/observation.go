// Package observation converts the objects of a NodeSet for package plan: its spec, its pods and their Kubernetes
// nodes.
//
// The controller and the plugin for kubectl use it, so that both make the same plan of the same objects.
package observation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/podfailure"
	"github.com/slurm-operator/slurm-operator/internal/provisioning"
)

// Set converts a spec for package plan. Percentages of maxUnavailable refer to the desired pods.
func Set(set *slinkyv1beta1.NodeSet, revision string, desired int, now time.Time) plan.Set {
	return plan.Set{
		Name: set.Name, UID: string(set.UID),
		DaemonSet: IsDaemonSet(set), Replicas: Replicas(set), Revision: revision, Update: update(set, desired, now),
		MinReady:     time.Duration(set.Spec.MinReadySeconds) * time.Second,
		Registration: cmp.Or(set.Spec.RegistrationTimeout.Duration, defaultRegistration),
		Deleting:     set.DeletionTimestamp != nil,
		Waived: set.DeletionTimestamp != nil &&
			set.Annotations[slinkyv1beta1.AnnotationDeleteWithoutDrain] == "true",
		Prune: prunePolicies[set.Spec.PruneSlurmNodeRecords],
	}
}

// prunePolicies converts policies for package plan. Objects from before the default have none.
var prunePolicies = map[slinkyv1beta1.PrunePolicy]plan.PrunePolicy{
	"": plan.PruneNever, slinkyv1beta1.PruneNever: plan.PruneNever,
	slinkyv1beta1.PruneScaledIn: plan.PruneScaledIn, slinkyv1beta1.PruneNodeNotFound: plan.PruneAll,
}

// defaultRegistration is the default of spec.registrationTimeout, for objects from before the field.
const defaultRegistration = 5 * time.Minute

// IsDaemonSet reports whether a NodeSet has a pod on each Kubernetes node that matches.
func IsDaemonSet(set *slinkyv1beta1.NodeSet) bool {
	return set.Spec.ScalingMode == slinkyv1beta1.ScalingModeDaemonSet
}

// Replicas returns how many pods a NodeSet asks for, if it is not in DaemonSet mode.
func Replicas(set *slinkyv1beta1.NodeSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

// update returns whether pods are replaced now, and how many may be unavailable meanwhile.
func update(set *slinkyv1beta1.NodeSet, desired int, now time.Time) plan.Update {
	strategy := set.Spec.UpdateStrategy
	switch strategy.Type {
	case slinkyv1beta1.OnDelete:
		return plan.Update{}
	case slinkyv1beta1.ScheduledUpdate:
		return plan.Update{Replace: inWindow(strategy.ScheduledUpdate, now), MaxUnavailable: desired}
	case slinkyv1beta1.RollingUpdate:
	}
	share := intstr.FromString("25%")
	if rolling := strategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		share = *rolling.MaxUnavailable
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(&share, desired, true)
	if err != nil {
		most = 1 // unreachable: the API server refuses such values
	}
	return plan.Update{Replace: true, MaxUnavailable: max(most, 1)}
}

func inWindow(window *slinkyv1beta1.NodeSetScheduledUpdate, now time.Time) bool {
	if window == nil || window.StartTime == nil {
		return false
	}
	start := window.StartTime.Time
	return !now.Before(start) && now.Before(start.Add(window.Duration.Duration))
}

// Pod converts a pod for package plan.
func Pod(pod *corev1.Pod) plan.Pod {
	is := plan.Pod{
		Name: pod.Name, UID: string(pod.UID), Ordinal: Ordinal(pod), SlurmNode: worker.SlurmName(pod),
		KubernetesNode: HostOf(pod),
		Revision:       pod.Labels[appsv1.ControllerRevisionHashLabelKey], Created: pod.CreationTimestamp.Time,
		Unscheduled: pod.Spec.NodeName == "", Terminating: pod.DeletionTimestamp != nil,
		Exited: pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded,
		Mark:   podMark(pod),
		Named:  worker.IsNamed(pod), Request: pod.Annotations[provisioning.AnnotationRequest],
		Dynamic: pod.Labels[naming.LabelElastic] == "",
	}
	_, sourced := pod.Annotations[slinkyv1beta1.AnnotationPodCordonSource]
	if pod.DeletionTimestamp != nil {
		is.Terminates = pod.DeletionTimestamp.Time
	}
	_, protected := pod.Labels[slinkyv1beta1.LabelPodProtect]
	is.Unprotected = !protected
	is.Cordoned = pod.Annotations[slinkyv1beta1.AnnotationPodCordon] == "true" && !sourced
	if cost, err := strconv.ParseInt(pod.Annotations[slinkyv1beta1.AnnotationPodDeletionCost], 10, 32); err == nil {
		is.DeletionCost = int32(cost)
	}
	for i := range pod.Status.ContainerStatuses {
		container := &pod.Status.ContainerStatuses[i]
		if container.Name != nodeconf.Container {
			continue
		}
		is.EverRan = container.State.Waiting == nil || container.RestartCount > 0 ||
			container.LastTerminationState.Terminated != nil
		if running := container.State.Running; running != nil {
			is.Started = running.StartedAt.Time
		}
	}
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			is.ReadySince = condition.LastTransitionTime.Time
		}
		is.Registered = is.Registered || condition.Type == slinkyv1beta1.PodConditionRegistered
	}
	if is.ReadySince.IsZero() {
		is.Failing = strings.TrimPrefix(podfailure.Describe([]corev1.Pod{*pod}), "pod "+pod.Name+": ")
	}
	return is
}

// podMark returns who set the cordon annotation of a pod.
func podMark(pod *corev1.Pod) plan.Mark {
	cordon, set := pod.Annotations[slinkyv1beta1.AnnotationPodCordon]
	switch ours := pod.Annotations[slinkyv1beta1.AnnotationPodCordonSource] == slinkyv1beta1.PodCordonScaleIn; {
	case ours && cordon == "true":
		return plan.Marked
	case ours:
		return plan.PartlyMarked
	case set:
		return plan.MarkedByOthers
	default:
		return plan.Unmarked
	}
}

// Ordinal returns the ordinal of a pod; -1 in DaemonSet mode.
func Ordinal(pod *corev1.Pod) int {
	if ordinal, numbered := worker.Ordinal(pod); numbered {
		return ordinal
	}
	return -1
}

// HostOf returns the Kubernetes node that a pod runs on, or is bound to; empty if neither.
func HostOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" || pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return pod.Spec.NodeName
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	for _, term := range required.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// KubernetesNode converts a Kubernetes node for package plan. In DaemonSet mode the template decides whether it
// gets a pod.
func KubernetesNode(set *slinkyv1beta1.NodeSet, template *corev1.PodTemplateSpec,
	node *corev1.Node) plan.KubernetesNode {
	planned := plan.KubernetesNode{SlurmNode: worker.OnNode(set, node).SlurmName, Drain: kubernetesNodeDrain(set, node)}
	if IsDaemonSet(set) {
		// Without a template it is unknown which Kubernetes nodes match, and no pod is removed for that.
		planned.Selected = template == nil || selects(&template.Spec, node)
		planned.Stays = planned.Selected && (template == nil || tolerates(&template.Spec, node, evicts))
		planned.Wanted = planned.Selected && node.DeletionTimestamp == nil &&
			(template == nil || tolerates(&template.Spec, node, repels))
	}
	return planned
}

// selects reports whether the nodeSelector and affinity of a template match a Kubernetes node.
func selects(spec *corev1.PodSpec, node *corev1.Node) bool {
	match, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec}).Match(node)
	return err == nil && match
}

// tolerates reports whether a template tolerates the taints of a Kubernetes node that count. Free resources do not
// matter, as with a DaemonSet.
func tolerates(spec *corev1.PodSpec, node *corev1.Node, counts func(*corev1.Taint) bool) bool {
	_, untolerated := schedulingcorev1.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints,
		spec.Tolerations, counts, true)
	return !untolerated
}

// repels reports whether a taint prevents new pods.
func repels(taint *corev1.Taint) bool {
	return taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.Contains(passingTaints, taint.Key)
}

// evicts reports whether a taint also evicts running pods.
func evicts(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoExecute && !slices.Contains(passingTaints, taint.Key)
}

// passingTaints are set by Kubernetes on nodes that are cordoned or not healthy. The pod stays: Slurm decides what that
// means for jobs, and a cordon drains its Slurm node.
var passingTaints = []string{
	corev1.TaintNodeUnschedulable, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable,
	corev1.TaintNodeMemoryPressure,
	corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable,
}

// kubernetesNodeDrain returns why the Slurm nodes on a Kubernetes node must be drained; empty if they must not.
func kubernetesNodeDrain(set *slinkyv1beta1.NodeSet, node *corev1.Node) string {
	if node.Spec.Unschedulable {
		if reason := node.Annotations[slinkyv1beta1.AnnotationNodeCordonReason]; reason != "" {
			return reason
		}
		return fmt.Sprintf("Kubernetes node %s is cordoned", node.Name)
	}
	for _, rule := range set.Spec.DrainOnNodeConditions {
		for i := range node.Status.Conditions {
			condition := &node.Status.Conditions[i]
			if condition.Type == rule.Type && condition.Status == cmp.Or(rule.Status, corev1.ConditionTrue) {
				return fmt.Sprintf("Kubernetes node %s has condition %s=%s", node.Name, condition.Type,
					condition.Status)
			}
		}
	}
	if taint := DrainingTaint(set, node); taint != nil {
		return fmt.Sprintf("Kubernetes node %s has taint %s", node.Name, taint.Key)
	}
	return ""
}

// reclaimTaints are set on Kubernetes nodes that are about to be reclaimed or removed: a spot instance, maintenance, or
// an autoscaler that consolidates.
var reclaimTaints = []slinkyv1beta1.NodeTaintRule{
	{Key: "karpenter.sh/disrupted"}, {Key: "karpenter.sh/disruption"}, // the second before Karpenter 1.0
	{Key: "ToBeDeletedByClusterAutoscaler"},
	{Key: "aws-node-termination-handler/spot-itn"}, {Key: "aws-node-termination-handler/scheduled-maintenance"},
	{Key: "aws-node-termination-handler/asg-lifecycle-termination"},
	{Key: "cloud.google.com/impending-node-termination"},
}

// DrainingTaint returns the first taint of a Kubernetes node for which its Slurm nodes must be drained; nil if there is
// none. Pods need not tolerate it: most of these taints do not evict.
func DrainingTaint(set *slinkyv1beta1.NodeSet, node *corev1.Node) *corev1.Taint {
	rules := set.Spec.DrainOnNodeTaints
	if rules == nil {
		rules = reclaimTaints
	}
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if slices.ContainsFunc(rules, func(rule slinkyv1beta1.NodeTaintRule) bool {
			return rule.Key == taint.Key && (rule.Value == "" || rule.Value == taint.Value)
		}) {
			return taint
		}
	}
	return nil
}
