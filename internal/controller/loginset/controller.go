// Package loginset runs login pods for each LoginSet: sshd for the users, and sackd, which provides configuration and
// credentials to Slurm's commands in the pod.
//
// Users identify a LoginSet by its host keys, so these are generated once, survive deletion of the LoginSet, and are
// the same in every pod. A pod has user sessions, so it is replaced only if necessary: authorized keys are read at each
// login and take effect in running pods; everything else is part of the pod template, or of a digest in it.
package loginset

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

// A Reconciler reconciles LoginSets.
type Reconciler struct {
	Client   client.Client
	Children *child.Applier
	Status   *status.Writer
	Clock    clock.PassiveClock
	// NewQueue creates the work queue; nil for the default.
	NewQueue retry.NewQueue
	Images   naming.Images
	// ClusterDomain is the DNS domain of the Kubernetes cluster. Without it, login pods do not resolve the short names
	// of Slurm nodes.
	ClusterDomain string
}

// Reconcile reconciles the pods and Services of one LoginSet.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope, err := r.observe(ctx, request)
	if err != nil || scope == nil {
		return ctrl.Result{}, err
	}
	if verdict, blocked := obstacle(scope); blocked {
		return ctrl.Result{}, r.report(ctx, scope, verdict)
	}
	err = r.act(ctx, scope)
	if verdict, refused := refusal(err); refused {
		return retry.After(child.RetryRefusal, r.report(ctx, scope, verdict))
	}
	return ctrl.Result{}, errors.Join(err, r.report(ctx, scope, judge(scope, err)))
}
