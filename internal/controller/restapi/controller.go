// Package restapi runs slurmrestd for each RestApi: a Deployment, a Service in front of it, and a ConfigMap with the
// part of the cluster's slurm.conf that slurmrestd needs.
//
// slurmrestd listens on a Unix socket, and a container next to it terminates TLS. Its certificate is one that the spec
// names, or one that this controller generates and renews in a Secret; a ConfigMap has what clients trust. The pods
// read a changed certificate by themselves.
//
// The configuration comes from the ConfigMap that the Controller's slurmctld runs with, so slurmrestd never gets one
// that slurmctld refuses. slurmrestd does not reload its configuration: the pod template has the hash of slurmrestd's
// part, and only a change of that part, which contains no partitions and nodes, replaces the pods.
package restapi

import (
	"context"
	"errors"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A Reconciler reconciles RestApis.
type Reconciler struct {
	Client   client.Client
	Children *child.Applier
	Status   *status.Writer
	Clock    clock.PassiveClock
	// NewQueue creates the work queue; nil for the default.
	NewQueue retry.NewQueue
	Images   naming.Images
	// ClusterDomain is the DNS domain of the Kubernetes cluster; it may be empty.
	ClusterDomain string
}

// Reconcile reconciles slurmrestd with one RestApi.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope, err := r.observe(ctx, request)
	if err != nil || scope == nil {
		return ctrl.Result{}, err
	}
	plan := decide(scope)
	err = r.act(ctx, scope, plan)
	if refusal, ok := child.Refusal(err); ok {
		return retry.After(child.RetryRefusal, r.report(ctx, scope, obstacle(refusal), nil))
	}
	return retry.After(plan.requeueAfter, errors.Join(err, r.report(ctx, scope, plan, err)))
}
