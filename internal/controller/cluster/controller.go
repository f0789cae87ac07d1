// Package cluster runs slurmctld for each Controller and keeps its configuration.
//
// The configuration is the delicate part: a slurmctld that reads a bad one ends. So a changed configuration goes a way of
// four steps, of which each leaves its trace in the API server, so that any operator can go on where another ended:
//
//  1. built: slurm.conf and all files beside it, from the Controller, its NodeSets, its Accounting and the ConfigMaps that it
//     names, with one hash over all;
//  2. tried: a pod with the image of slurmctld starts a throwaway one on it, and reports in its termination message;
//  3. promoted: only what was accepted is written to the ConfigMap that slurmctld's pods mount, so that whatever starts,
//     starts with a configuration that works;
//  4. applied: an agent beside slurmctld sees the new files, makes slurmctld read them, and tells which hash it runs with.
//
// The same trial is held for a new image, before slurmctld is replaced.
package cluster

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A Reconciler reconciles Controllers.
type Reconciler struct {
	Client   client.Client
	Children *child.Applier
	Status   *status.Writer
	Clock    clock.PassiveClock
	Images   naming.Images
	Pool     *slurm.Pool
	// Agent asks the agent in a pod, by the pod's address, which configuration slurmctld runs with.
	Agent func(ctx context.Context, address string) (AgentState, error)
}

// Reconcile brings one Slurm cluster in step with its Controller.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope, err := r.observe(ctx, request)
	if err != nil || scope == nil {
		return ctrl.Result{}, err
	}
	plan := decide(scope)
	err = r.act(ctx, scope, &plan)
	if refusal, ok := child.Refusal(err); ok {
		plan.problem, err = &refusal, nil
	}
	return retry.After(plan.again(scope), errors.Join(err, r.report(ctx, scope, plan, err)))
}

// How often to look at what tells nobody when it changes.
const (
	// applyInterval is while a promoted configuration is on its way to slurmctld.
	applyInterval = time.Second
	// touchInterval is how long a kubelet gets to bring new files before it is touched again.
	touchInterval = 3 * time.Second
	// waitInterval is while new keys wait for the last old slurmd, or a partition for the end of its last job.
	waitInterval = 15 * time.Second
	// podPatience is how long Kubernetes gets to make slurmctld's pod before the operator finds out what is in the way.
	podPatience = 5 * time.Second
	// retryTrial is how long a trial that could not be held is left for people to look at, before the next.
	retryTrial = time.Minute
)
