package why

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/observation"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
)

// drained explains what closes a node in Slurm.
func drained(input *Input) Finding {
	node := &input.Joined
	if node.Owner == nodes.OwnerOperator {
		return Finding{What: "the operator drained it: " + node.Because(input.Now), Remedy: Lift(node)}
	}
	if node.Down {
		return Finding{
			What: fmt.Sprintf("it is %s: %s", node.State, node.Because(input.Now)),
			Remedy: "it returns to service when its slurmd registers again; otherwise, when the cause is gone: " +
				"kubectl slurm undrain " + node.Name,
		}
	}
	return Finding{
		What:   "it is drained, not by the operator: " + node.Because(input.Now),
		Remedy: "when the cause is gone: kubectl slurm undrain " + node.Name,
	}
}

// Lift says how a drain of the operator is lifted: its cause must go.
func Lift(node *nodes.Node) string {
	pod, set := cmp.Or(node.Pod, node.Name), cmp.Or(node.NodeSet, "…")
	cause, _ := plan.CauseOf(node.Reason)
	switch cause {
	case plan.ScaleIn:
		return fmt.Sprintf("to keep it, scale out again: kubectl scale nodeset %s --replicas=…", set)
	case plan.Updating:
		return "it ends when the pod is replaced; to cancel the update, restore the previous spec of the NodeSet " + set
	case plan.Deletion:
		return fmt.Sprintf("the deletion of the NodeSet %s cannot be cancelled; apply the NodeSet again when it is gone", set)
	case plan.PodCordon:
		return "to lift it, uncordon the pod: " + uncordonPod(pod)
	case plan.FromKubernetesNode:
		return "to lift it, uncordon or repair the Kubernetes node: kubectl uncordon " +
			cmp.Or(node.KubernetesNode, "NODE")
	case plan.NoCapacity:
		return "it ends after spec.elastic.capacityBackoff of the NodeSet " + set +
			"; to retry at once: kubectl slurm -- scontrol update nodename=" + node.Name + " state=undrain"
	case plan.NotStarted:
		return "it ends after spec.elastic.capacityBackoff of the NodeSet " + set +
			"; see the events and the log of its pod meanwhile"
	case plan.Missing, plan.Exited, plan.Lost, plan.NoCause, plan.NoPod, plan.ForJob, plan.ForMinimum, plan.ForWarm,
		plan.ForSchedule, plan.Idle, plan.PoweredDown, plan.BackoffIsOver:
	}
	return "it ends when its cause is gone"
}

func uncordonPod(pod string) string {
	return fmt.Sprintf("kubectl annotate pod %s %s-", pod, slinkyv1beta1.AnnotationPodCordon)
}

// cordoned returns the causes of a drain that Kubernetes' objects have, unless Slurm already shows them.
func cordoned(input *Input) []Finding {
	var found []Finding
	shown, _ := plan.CauseOf(input.Joined.Reason)
	pod := input.Pod
	_, sourced := pod.Annotations[slinkyv1beta1.AnnotationPodCordonSource]
	if pod.Annotations[slinkyv1beta1.AnnotationPodCordon] == "true" && !sourced && shown != plan.PodCordon {
		found = append(found, Finding{"its pod is cordoned by its annotation", uncordonPod(pod.Name)})
	}
	node := input.KubernetesNode
	if node == nil {
		if input.Joined.Cordoned && shown != plan.FromKubernetesNode {
			found = append(found, Finding{"its Kubernetes node " + pod.Spec.NodeName + " is cordoned",
				"kubectl uncordon " + pod.Spec.NodeName})
		}
		return found
	}
	if node.Spec.Unschedulable && shown != plan.FromKubernetesNode {
		why := ""
		if reason := node.Annotations[slinkyv1beta1.AnnotationNodeCordonReason]; reason != "" {
			why = " (" + reason + ")"
		}
		found = append(found, Finding{"its Kubernetes node " + node.Name + " is cordoned" + why,
			"kubectl uncordon " + node.Name})
	}
	if input.NodeSet != nil {
		if taint := observation.DrainingTaint(input.NodeSet, node); taint != nil {
			found = append(found, Finding{fmt.Sprintf("its Kubernetes node %s has the taint %s, for which the NodeSet asks "+
				"for a drain", node.Name, taint.Key), "kubectl describe node " + node.Name})
		}
	}
	return append(found, conditions(input.NodeSet, node)...)
}

// conditions returns the conditions of a Kubernetes node for which the NodeSet asks for a drain, and a lost kubelet.
func conditions(set *slinkyv1beta1.NodeSet, node *corev1.Node) []Finding {
	var found []Finding
	for i := range node.Status.Conditions {
		condition := &node.Status.Conditions[i]
		detail := cmp.Or(condition.Message, condition.Reason)
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			found = append(found, Finding{fmt.Sprintf("its Kubernetes node %s is not ready: %s", node.Name, detail),
				"kubectl describe node " + node.Name})
		}
		if set == nil {
			continue
		}
		for _, rule := range set.Spec.DrainOnNodeConditions {
			if condition.Type == rule.Type && condition.Status == cmp.Or(rule.Status, corev1.ConditionTrue) {
				found = append(found, Finding{fmt.Sprintf("its Kubernetes node %s has the condition %s=%s, for which the NodeSet "+
					"asks for a drain: %s", node.Name, condition.Type, condition.Status, detail),
					"repair the Kubernetes node: kubectl describe node " + node.Name})
			}
		}
	}
	return found
}
