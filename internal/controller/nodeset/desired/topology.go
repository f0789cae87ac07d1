package desired

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// Topologies returns the Slurm nodes whose topology must change, by the topology that they should have.
func Topologies(set *slinkyv1beta1.NodeSet, nodes []Node) map[string][]string {
	byTopology := map[string][]string{}
	for _, node := range nodes {
		if node.KubernetesNode == nil {
			continue
		}
		if wanted, managed := topology(set, node.KubernetesNode); managed && wanted != node.SlurmNode.Topology {
			byTopology[wanted] = append(byTopology[wanted], node.SlurmNode.Name)
		}
	}
	return byTopology
}

// topology returns the topology that a Kubernetes node gives to its Slurm nodes, and whether it gives any: without an
// annotation and without rules for labels, others manage it. An empty annotation removes a Slurm node from all
// topologies.
func topology(set *slinkyv1beta1.NodeSet, node *corev1.Node) (wanted string, managed bool) {
	var units []string
	annotation, annotated := node.Annotations[slinkyv1beta1.AnnotationTopology]
	for unit := range strings.SplitSeq(annotation, ",") {
		if unit = strings.TrimSpace(unit); unit != "" {
			units = append(units, unit)
		}
	}
	if annotated || set.Spec.NodeLabels == nil || len(set.Spec.NodeLabels.Topology) == 0 {
		return strings.Join(units, ","), annotated
	}
	for _, rule := range set.Spec.NodeLabels.Topology {
		levels := []string{rule.Name}
		for _, label := range rule.Labels {
			if value := node.Labels[label]; value != "" {
				levels = append(levels, value)
			}
		}
		if len(levels) == 1+len(rule.Labels) {
			units = append(units, strings.Join(levels, ":"))
		}
	}
	return strings.Join(units, ","), true
}
