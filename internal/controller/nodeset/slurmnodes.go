package nodeset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// registered returns the pods that are not being deleted and whose nodes Slurm has.
func (s *scope) registered() []desired.Node {
	var nodes []desired.Node
	for i := range s.pods {
		pod := &s.pods[i]
		record, known := s.snapshot.Slurm.Node(s.snapshot.Pods[i].SlurmNode)
		if known && pod.DeletionTimestamp == nil && !record.PoweringUp() {
			nodes = append(nodes, desired.Node{Pod: pod, SlurmNode: record, KubernetesNode: s.nodes[pod.Spec.NodeName]})
		}
	}
	return nodes
}

// describeNodes writes into Slurm which NodeSet each Slurm node belongs to, and the features that its Kubernetes node
// asks for, with one request for all nodes of the same description. slurmctld keeps a dynamic node through a crash only
// after its record was updated.
func (r *Reconciler) describeNodes(ctx context.Context, scope *scope, next *plan.Plan, result *outcome) error {
	if scope.snapshot.Slurm == nil || !scope.snapshot.Answers {
		return nil
	}
	if registering := scope.registering(); len(registering) > 0 {
		scope.session.Mirror.Expect(registering...) // in steady state it would see new Slurm nodes some seconds late
	}
	if !r.expectations.showsDescriptions(scope.set.UID, scope.snapshot.Slurm.ChangesAsOf()) {
		return nil // the mirror will read them, and its next snapshot causes another reconcile
	}
	limit := maxUpdates(scope, next)
	again := r.expectations.lastDescribed(scope.set.UID).Add(descriptionInterval)
	if limit == updatesWhileStarting && scope.now.Before(again) {
		result.describe = again
		return nil
	}
	descriptions := desired.Descriptions(scope.set, scope.registered())
	if len(descriptions) > 0 {
		defer scope.session.Mirror.Expect() // the next description waits until the mirror shows these
	}
	return inParallel(ctx, min(len(descriptions), limit), parallelSlurmUpdates, func(index int) error {
		return r.describe(ctx, scope, descriptions[index].Nodes, descriptions[index].Update)
	})
}

// descriptionInterval is the least time between descriptions while many pods start: one request then covers more of
// them.
const descriptionInterval = 10 * time.Second

// describe writes the same description to Slurm nodes. If Slurm refuses, one of them may be the cause, for example
// because its record was deleted meanwhile: the others are described without it.
func (r *Reconciler) describe(ctx context.Context, scope *scope, nodes []string, update slurm.NodeUpdate) error {
	err := scope.session.Client.UpdateNodes(ctx, nodes, update)
	switch half := len(nodes) / 2; {
	case err == nil:
		r.expectations.expectDescribed(scope.set.UID, r.Clock.Now())
		return nil
	case half > 0 && (errors.Is(err, slurm.PartialEffect) || errors.Is(err, slurm.Rejected)):
		return errors.Join(r.describe(ctx, scope, nodes[:half], update), r.describe(ctx, scope, nodes[half:], update))
	default:
		return fmt.Errorf("describing %d Slurm nodes, such as %s: %w", len(nodes), nodes[0], err)
	}
}

// registering returns the Slurm nodes of ready pods that have yet to appear in Slurm.
func (s *scope) registering() []string {
	var nodes []string
	for i := range s.snapshot.Pods {
		pod := &s.snapshot.Pods[i]
		record, known := s.snapshot.Slurm.Node(pod.SlurmNode)
		if (!known || record.PoweringUp()) && !pod.ReadySince.IsZero() {
			nodes = append(nodes, pod.SlurmNode)
		}
	}
	return nodes
}

// A placement counts the Slurm nodes that could not be moved to the topology that their Kubernetes nodes ask for, and
// why.
type placement struct {
	reason, why string
	misplaced   int
}

// placeNodes moves Slurm nodes to the topology that their Kubernetes nodes ask for, with one request for each topology.
// It is not passed to slurmd, which would repeat it at every registration: slurmctld drains a node whose slurmd names a
// topology that does not exist. A topology that slurmctld refuses here has no effect.
func (r *Reconciler) placeNodes(ctx context.Context, scope *scope, _ *plan.Plan, result *outcome) error {
	if scope.snapshot.Slurm == nil || !scope.snapshot.Answers {
		return nil
	}
	result.placement = &placement{}
	byTopology := desired.Topologies(scope.set, scope.registered())
	var failures []error
	for _, topology := range slices.Sorted(maps.Keys(byTopology)) {
		nodes := byTopology[topology]
		_, err := scope.session.UpdateNodes(ctx, nodes, slurm.NodeUpdate{Topology: &topology})
		switch {
		case slurm.ErrorNumber(err, slurm.NumberTopology):
			result.placement.refused(nodes, slinkyv1beta1.ReasonTopologyRefused, fmt.Sprintf(
				"Slurm has no topology unit %s for Slurm node %s; correct the annotation or the labels of its Kubernetes node, or "+
					"topology.yaml", topology, nodes[0]))
		case errors.Is(err, slurm.Unsupported):
			result.placement.refused(nodes, slinkyv1beta1.ReasonUnsupportedVersion,
				"before 25.05 Slurm reads the topology of nodes only from topology.conf")
		case err != nil:
			failures = append(failures,
				fmt.Errorf("setting topology %s of %d Slurm nodes: %w", topology, len(nodes), err))
		}
	}
	return errors.Join(failures...)
}

// refused counts Slurm nodes whose topology was refused. The first reason is reported.
func (p *placement) refused(nodes []string, reason, why string) {
	if p.misplaced += len(nodes); p.reason == "" {
		p.reason, p.why = reason, why
	}
}

// retryPlacement returns when to try a refused topology again: no event reports a changed topology.yaml.
func retryPlacement(scope *scope, result outcome) time.Time {
	if result.placement == nil || result.placement.reason != slinkyv1beta1.ReasonTopologyRefused {
		return time.Time{}
	}
	return scope.now.Add(child.RetryRefusal)
}
