package nodeset

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/observation"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// observeElastic finds the records of a NodeSet that is elastic, or was, in the configuration of slurmctld. An external
// slurmctld has no records of the operator.
func (r *Reconciler) observeElastic(ctx context.Context, scope *scope) error {
	external := scope.controller != nil && scope.controller.Spec.External
	if scope.set.Spec.Elastic == nil && (external || observation.IsDaemonSet(scope.set)) {
		return nil
	}
	conf, running := "", ""
	if scope.controller != nil {
		configuration, err := reference.Object(ctx, r.Client, scope.set.Namespace,
			naming.Configuration(scope.controller.Name), &corev1.ConfigMap{})
		if err != nil {
			return err
		}
		if configuration != nil {
			conf = configuration.Data[slurmconf.FileName]
		}
		running = scope.controller.Status.AppliedConfigHash
	}
	if scope.set.Spec.Elastic != nil {
		scope.snapshot.Set.Elastic = desired.Elastic(scope.set, conf, running)
		return nil
	}
	var nodes []*slurm.Node
	if scope.session != nil {
		if known := scope.session.Mirror.Snapshot(); known != nil {
			nodes = known.Nodes
		}
	}
	scope.snapshot.Set.Elastic = desired.EndedElastic(scope.set, conf, running, nodes)
	return nil
}

// giveUp forces Slurm nodes down that did not start in time. It reads Slurm again immediately before: a slurmd that has
// registered since the plan was made may run a job.
func (r *Reconciler) giveUp(ctx context.Context, scope *scope, next *plan.Plan, result *outcome) error {
	planned := next.Of(plan.ForcePowerDown)
	if len(planned) == 0 {
		return nil
	}
	reading, cancel := context.WithTimeout(ctx, secondReadTimeout)
	defer cancel()
	current, err := scope.session.Mirror.RefreshNodes(reading, nodesOf(planned))
	if err != nil {
		return fmt.Errorf("reading Slurm before %d Slurm nodes are powered down: %w", len(planned), err)
	}
	latest := scope.snapshot
	latest.Now, latest.Answers, latest.Slurm = r.Clock.Now(), scope.session.Status().Reachable, current
	latest.JustRead, latest.Reread = true, nil // all that matters here
	confirmed := plan.Confirmed(planned, &latest)
	result.again = result.again || len(confirmed) < len(planned)
	return r.updateNodes(ctx, scope, plan.ForcePowerDown, confirmed, func(string) slurm.NodeUpdate {
		return slurm.NodeUpdate{State: slurm.ForcePowerDown}
	})
}

// powerNodes asks Slurm to power nodes up and down. A request that opens a Slurm node may have succeeded whatever the
// answer is.
func (r *Reconciler) powerNodes(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	var failures []error
	for _, request := range []struct {
		kind  plan.Kind
		state slurm.TargetState
	}{
		{plan.PowerDown, slurm.PowerDown}, {plan.Resume, slurm.Resume}, {plan.PowerUp, slurm.PowerUp},
	} {
		update := func(string) slurm.NodeUpdate { return slurm.NodeUpdate{State: request.state} }
		failures = append(failures, r.updateNodes(ctx, scope, request.kind, next.Of(request.kind), update))
	}
	return errors.Join(failures...)
}

// opens reports whether an action makes Slurm nodes take jobs.
func opens(kind plan.Kind) bool {
	return kind == plan.Undrain || kind == plan.Resume || kind == plan.PowerUp
}

// hasOpenRecords reports whether Slurm could still schedule jobs to the nodes of a deleted elastic NodeSet: their
// records stay in slurm.conf until they are closed.
func hasOpenRecords(scope *scope, next *plan.Plan) bool {
	return scope.snapshot.Set.Elastic != nil && !scope.snapshot.Set.Waived &&
		(next.Elastic.Open > 0 || scope.snapshot.Slurm == nil || !scope.snapshot.Answers)
}
