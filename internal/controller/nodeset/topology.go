package nodeset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A placement says why nodes are not where their machines say, and how many are not.
type placement struct {
	reason, why string
	misplaced   int
}

// placeNodes tells Slurm where in its topologies nodes are, with one request for each place. slurmd is not told: it would repeat
// the place whenever it registers, and slurmctld drains a node whose slurmd names a place that does not exist. A place that
// slurmctld refuses here costs nothing.
func (r *Reconciler) placeNodes(ctx context.Context, scope *scope, _ *plan.Plan, result *outcome) error {
	if scope.snapshot.Slurm == nil || !scope.snapshot.Answers {
		return nil
	}
	byPlace := map[string][]string{}
	for i := range scope.pods {
		pod := &scope.pods[i]
		machine, node := scope.nodes[pod.Spec.NodeName], worker.SlurmName(pod)
		record, known := scope.snapshot.Slurm.Node(node)
		if !known || machine == nil || pod.DeletionTimestamp != nil {
			continue
		}
		if wanted, ours := place(scope.set, machine); ours && wanted != record.Topology {
			byPlace[wanted] = append(byPlace[wanted], node)
		}
	}
	result.placement = &placement{}
	var failures []error
	for _, wanted := range slices.Sorted(maps.Keys(byPlace)) {
		nodes := byPlace[wanted]
		_, err := scope.session.UpdateNodes(ctx, nodes, slurm.NodeUpdate{Topology: &wanted})
		switch {
		case slurm.ErrorNumber(err, slurm.NumberTopology):
			result.placement.refused(nodes, slinkyv1beta1.ReasonTopologyRefused, fmt.Sprintf(
				"Slurm has no place %s for node %s; correct the annotation or the labels of its Kubernetes node, or topology.yaml", wanted, nodes[0]))
		case errors.Is(err, slurm.Unsupported):
			result.placement.refused(nodes, slinkyv1beta1.ReasonUnsupportedVersion, "Slurm takes the places of nodes from topology.conf alone before 25.05")
		case err != nil:
			failures = append(failures, fmt.Errorf("giving %d nodes the place %s: %w", len(nodes), wanted, err))
		}
	}
	return errors.Join(failures...)
}

// refused notes nodes that could not be given their place. The first reason is told.
func (p *placement) refused(nodes []string, reason, why string) {
	if p.misplaced += len(nodes); p.reason == "" {
		p.reason, p.why = reason, why
	}
}

// placeAgain is when to try once more: nothing tells when topology.yaml has changed.
func placeAgain(scope *scope, result outcome) time.Time {
	if result.placement == nil || result.placement.reason != slinkyv1beta1.ReasonTopologyRefused {
		return time.Time{}
	}
	return scope.now.Add(child.RetryRefusal)
}

// place is where a machine says that its Slurm nodes are. It returns false when it says nothing, and the place is somebody
// else's to give: who wants a node to have none annotates its machine with nothing.
func place(set *slinkyv1beta1.NodeSet, machine *corev1.Node) (string, bool) {
	var places []string
	annotation, annotated := machine.Annotations[slinkyv1beta1.AnnotationTopology]
	for part := range strings.SplitSeq(annotation, ",") {
		if part = strings.TrimSpace(part); part != "" {
			places = append(places, part)
		}
	}
	if annotated || set.Spec.NodeLabels == nil || len(set.Spec.NodeLabels.Topology) == 0 {
		return strings.Join(places, ","), annotated
	}
	for _, rule := range set.Spec.NodeLabels.Topology {
		levels := []string{rule.Name}
		for _, label := range rule.Labels {
			if value := machine.Labels[label]; value != "" {
				levels = append(levels, value)
			}
		}
		if len(levels) == 1+len(rule.Labels) {
			places = append(places, strings.Join(levels, ":"))
		}
	}
	return strings.Join(places, ","), true
}

// topologyApplied says whether all nodes are where their machines say.
func topologyApplied(is *placement, conditions *status.Conditions) {
	set := func(is metav1.ConditionStatus, reason, format string, arguments ...any) {
		conditions.Set(slinkyv1beta1.ConditionTopologyApplied, is, reason, format, arguments...)
	}
	switch {
	case is == nil:
		set(metav1.ConditionUnknown, slinkyv1beta1.ReasonReconciling, "Slurm was not asked")
	case is.misplaced > 0:
		set(metav1.ConditionFalse, is.reason, "%d nodes are not in their place: %s", is.misplaced, is.why)
	default:
		set(metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected, "no Kubernetes node names another place than Slurm has")
	}
}
