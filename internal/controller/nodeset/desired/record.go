package desired

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A Description is a change that is the same for some Slurm nodes.
type Description struct {
	Update slurm.NodeUpdate
	Nodes  []string
}

// Descriptions returns what must change in the records of Slurm nodes, with all nodes of the same change together. The
// changes of the nodes that come first are first.
func Descriptions(set *slinkyv1beta1.NodeSet, nodes []Node) []Description {
	var descriptions []Description
	known := map[string]int{}
	for _, node := range nodes {
		update := Record(set, node)
		if update.Comment == nil && update.Features == nil {
			continue
		}
		key := fmt.Sprintf("%q", []any{dereference(update.Comment), dereference(update.Features)})
		index, found := known[key]
		if !found {
			index = len(descriptions)
			known[key] = index
			descriptions = append(descriptions, Description{Update: update})
		}
		descriptions[index].Nodes = append(descriptions[index].Nodes, node.SlurmNode.Name)
	}
	return descriptions
}

// dereference returns a value to compare: nil is not the zero value.
func dereference[T any](pointer *T) any {
	if pointer == nil {
		return nil
	}
	return *pointer
}

// Record returns what must change in the record of a Slurm node: the comment that names its NodeSet, and the features
// that its Kubernetes node asks for. The update is empty if both are right. The comment also names the pod if slurmd
// did not bring that as its instance ID, as in pods that an older version of the operator has created. A comment that
// the operator did not write stays.
func Record(set *slinkyv1beta1.NodeSet, node Node) slurm.NodeUpdate {
	var update slurm.NodeUpdate
	pod, record := node.Pod, node.SlurmNode
	owner := slurm.Owner{
		Namespace: pod.Namespace, PodName: pod.Name, Node: pod.Spec.NodeName, NodeSetName: set.Name,
		NodeSetUID: string(set.UID),
	}
	comment := owner.String()
	if _, err := slurm.ParseOwner(record.Instance); err == nil {
		comment = owner.NodeSet().String()
	}
	_, foreign := slurm.ParseOwner(record.Comment)
	if comment != record.Comment && (record.Comment == "" || foreign == nil) {
		update.Comment = &comment
	}
	if node.KubernetesNode != nil {
		if wanted := features(set, node.KubernetesNode, record.Features); !slices.Equal(wanted, record.Features) {
			update.Features = &wanted
		}
	}
	return update
}

// features returns the current features that come from elsewhere, followed by those that the Kubernetes node asks for.
func features(set *slinkyv1beta1.NodeSet, node *corev1.Node, current []string) []string {
	var own []string
	add := func(feature string) {
		if feature != "" && !strings.ContainsAny(feature, " \t\n,;&|[]()*=") {
			own = append(own, slinkyv1beta1.FeaturePrefix+feature)
		}
	}
	for feature := range strings.SplitSeq(node.Annotations[slinkyv1beta1.AnnotationFeatures], ",") {
		add(strings.TrimPrefix(strings.TrimSpace(feature), slinkyv1beta1.FeaturePrefix))
	}
	if rules := set.Spec.NodeLabels; rules != nil {
		for _, rule := range rules.Features {
			if value, labelled := node.Labels[rule.Label]; labelled {
				add(strings.TrimSuffix(rule.Feature+"-"+value, "-"))
			}
		}
	}
	slices.Sort(own)
	own = slices.Compact(own)
	foreign := slices.DeleteFunc(slices.Clone(current), func(feature string) bool {
		return strings.HasPrefix(feature, slinkyv1beta1.FeaturePrefix)
	})
	return append(foreign, own...)
}
