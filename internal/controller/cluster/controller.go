// Package cluster runs slurmctld for each Controller and manages its configuration.
//
// The configuration is the delicate part: a slurmctld that reads an invalid one exits. So a changed configuration
// passes through four stages. Each is recorded in the API server, so that another operator instance can continue:
//
//  1. built: slurm.conf and its companion files, from the Controller, its NodeSets, its Accounting and the ConfigMaps
//     it references, with one hash over all files;
//  2. validated: a pod with slurmctld's image starts a throwaway slurmctld with it and reports the result in its
//     termination message;
//  3. promoted: only an accepted configuration is written to the ConfigMap that slurmctld's pods mount, so that every
//     slurmctld starts with a valid one;
//  4. applied: an agent next to slurmctld notices the new files, makes slurmctld reload them, and reports the hash of
//     the running configuration.
//
// A new image is validated in the same way before slurmctld is replaced.
package cluster

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
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
	// NewQueue creates the work queue; nil for the default.
	NewQueue retry.NewQueue
	Images   naming.Images
	Pool     *slurm.Pool
	// Agent queries the agent in the pod with the given address for the configuration that slurmctld runs with. Both
	// must have the key; nil for an agent of an earlier version, which has none.
	Agent func(ctx context.Context, address string, key []byte) (agent.Report, error)
}

// Reconcile reconciles one Slurm cluster with its Controller.
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
	return retry.After(plan.requeueAfter(scope), errors.Join(err, r.report(ctx, scope, plan, err)))
}

// Polling intervals and timeouts for changes that cause no watch event.
const (
	// applyInterval is the polling interval until slurmctld has loaded a promoted configuration.
	applyInterval = time.Second
	// touchInterval is how long to wait for the kubelet to update the files of a pod before touching the pod again.
	touchInterval = 3 * time.Second
	// waitInterval is the polling interval while new keys wait for the last old slurmd, or a partition for its last
	// job.
	waitInterval = 15 * time.Second
	// podInterval is the polling interval while a pod of slurmctld is to be replaced, or its agent does not answer.
	podInterval = 5 * time.Second
	// podCreationTimeout is how long to wait for Kubernetes to create slurmctld's pod before checking whether it is
	// rejected.
	podCreationTimeout = 5 * time.Second
	// validationRetryInterval is how long the pod of a failed validation run is kept for inspection before the next
	// run.
	validationRetryInterval = time.Minute
)
