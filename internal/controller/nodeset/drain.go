package nodeset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// undrain lifts the operator's own drains, unless a pod is stale in the cache: it was not protected then.
func (r *Reconciler) undrain(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	actions := r.onCurrent(scope, next.Of(plan.Undrain))
	return r.updateNodes(ctx, scope, plan.Undrain, actions, func(string) slurm.NodeUpdate {
		return slurm.NodeUpdate{State: slurm.Undrain, Reason: slurm.NoReason}
	})
}

// clearReasons replaces the operator's reasons that outlived their drains.
func (r *Reconciler) clearReasons(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	return r.updateNodes(ctx, scope, plan.ClearReason, next.Of(plan.ClearReason), func(string) slurm.NodeUpdate {
		return slurm.NodeUpdate{Reason: slurm.NoReason}
	})
}

// drain makes Slurm schedule no more jobs on Slurm nodes.
func (r *Reconciler) drain(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	return r.updateNodes(ctx, scope, plan.Drain, next.Of(plan.Drain), func(why string) slurm.NodeUpdate {
		return slurm.NodeUpdate{State: slurm.Drain, Reason: why}
	})
}

// updateNodes carries out actions of a kind, with one request for each reason. Snapshots from before a request prove
// nothing any more if it succeeded, or if it may have lifted drains.
func (r *Reconciler) updateNodes(ctx context.Context, scope *scope, kind plan.Kind, actions []plan.Action,
	update func(why string) slurm.NodeUpdate) error {
	byReason := map[string][]plan.Action{}
	for _, action := range actions {
		byReason[action.Why] = append(byReason[action.Why], action)
	}
	var failures []error
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		actions := byReason[reason]
		nodes := nodesOf(actions)
		answered, err := scope.session.UpdateNodes(trace.Because(ctx, actions[0].Cause, reason), nodes, update(reason))
		if err == nil || opens(kind) {
			r.drainHistories.acknowledged(scope, nodes, answered)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s of %d Slurm nodes: %w", kind, len(nodes), err))
			continue
		}
		for _, action := range actions {
			r.done(scope, action, action.Pod.Name, action.SlurmNode)
		}
	}
	return errors.Join(failures...)
}

// prune deletes the records of Slurm nodes.
func (r *Reconciler) prune(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	actions := next.Of(plan.Prune)
	if len(actions) == 0 {
		return nil
	}
	ctx = trace.Because(ctx, actions[0].Cause, actions[0].Why)
	if err := scope.session.DeleteNodes(ctx, nodesOf(actions)); err != nil {
		return fmt.Errorf("deleting the records of %d Slurm nodes: %w", len(actions), err)
	}
	for _, action := range actions {
		r.done(scope, action, "", action.SlurmNode)
	}
	return nil
}

// nodesOf returns the Slurm nodes of actions.
func nodesOf(actions []plan.Action) []string {
	nodes := make([]string, len(actions))
	for i := range actions {
		nodes[i] = actions[i].SlurmNode
	}
	return nodes
}
