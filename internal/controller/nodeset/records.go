package nodeset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// describeNodes tells Slurm which pod is behind each node, and gives it the features that its Kubernetes node calls for.
// slurmctld keeps a dynamic node through a crash only after it was told something about it.
func (r *Reconciler) describeNodes(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	if scope.snapshot.Slurm == nil || !scope.snapshot.Answers {
		return nil
	}
	type update struct {
		node   string
		update slurm.NodeUpdate
	}
	var updates []update
	registering := false
	limit := paceOfMarks(scope, next) // each makes the mirror look at all nodes again
	for i := range scope.pods {
		pod := &scope.pods[i]
		node := worker.SlurmName(pod)
		record, known := scope.snapshot.Slurm.Node(node)
		registering = registering || !known && !scope.snapshot.Pods[i].ReadySince.IsZero()
		if !known || pod.DeletionTimestamp != nil || len(updates) == limit {
			continue
		}
		change := describe(scope.set, pod, scope.nodes[pod.Spec.NodeName], record)
		if change.Comment != nil || change.Features != nil {
			updates = append(updates, update{node, change})
		}
	}
	if registering {
		scope.session.Mirror.Nudge() // at rest it would see the new node some seconds late
	}
	return evenly(ctx, len(updates), nodesAtOnce, func(index int) error {
		if _, err := scope.session.UpdateNodes(ctx, []string{updates[index].node}, updates[index].update); err != nil {
			return fmt.Errorf("describing node %s to Slurm: %w", updates[index].node, err)
		}
		return nil
	})
}

// describe is what Slurm is to be told about a node; empty when it knows. A comment of somebody else's is left alone.
func describe(set *slinkyv1beta1.NodeSet, pod *corev1.Pod, machine *corev1.Node, record *slurm.Node) slurm.NodeUpdate {
	var change slurm.NodeUpdate
	owner := slurm.Owner{Namespace: pod.Namespace, PodName: pod.Name, Node: pod.Spec.NodeName, NodeSetName: set.Name, NodeSetUID: string(set.UID)}
	_, foreign := slurm.ParseOwner(record.Comment)
	if comment := owner.Comment(); comment != record.Comment && (record.Comment == "" || foreign == nil) {
		change.Comment = &comment
	}
	if machine != nil {
		if wanted := features(set, machine, record.Features); !slices.Equal(wanted, record.Features) {
			change.Features = &wanted
		}
	}
	return change
}

// features are those that a node has from elsewhere, and after them those that its Kubernetes node calls for.
func features(set *slinkyv1beta1.NodeSet, machine *corev1.Node, has []string) []string {
	var own []string
	add := func(feature string) {
		if feature != "" && !strings.ContainsAny(feature, " \t\n,;&|[]()*=") {
			own = append(own, slinkyv1beta1.FeaturePrefix+feature)
		}
	}
	for feature := range strings.SplitSeq(machine.Annotations[slinkyv1beta1.AnnotationFeatures], ",") {
		add(strings.TrimPrefix(strings.TrimSpace(feature), slinkyv1beta1.FeaturePrefix))
	}
	if rules := set.Spec.NodeLabels; rules != nil {
		for _, rule := range rules.Features {
			if value, labelled := machine.Labels[rule.Label]; labelled {
				add(strings.TrimSuffix(rule.Feature+"-"+value, "-"))
			}
		}
	}
	slices.Sort(own)
	own = slices.Compact(own)
	others := slices.DeleteFunc(slices.Clone(has), func(feature string) bool { return strings.HasPrefix(feature, slinkyv1beta1.FeaturePrefix) })
	return append(others, own...)
}
