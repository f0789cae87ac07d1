package slurmclient

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// act opens, replaces or closes the session.
func (r *Reconciler) act(ctx context.Context, scope *scope, key slurm.Key) error {
	if scope.awaitsAccounting && scope.controller.DeletionTimestamp == nil {
		return nil // slurmctld keeps running with its keys, and so does the session
	}
	endpoint, ok := decide(scope)
	if !ok {
		r.closeSession(ctx, key, "there is no RestApi, no key for tokens, or the Controller is being deleted")
		scope.session = nil
		return nil
	}
	before := scope.session
	err := r.Pool.Set(key,
		slurm.Settings{Identity: endpoint.identity(scope.jwtKey), Wrap: trace.Slurm,
			Dial: func() (slurm.Client, error) {
				return r.Dial(rest.Options{
					URL: endpoint.url, Metrics: endpoint.metrics, Token: tokens(scope.jwtKey, r.Clock),
					Observer: r.Requests(key),
				})
			}})
	if err != nil {
		return err
	}
	if scope.session, _ = r.Pool.Get(key); scope.session != before {
		log.FromContext(ctx).Info("opened Slurm session", "url", endpoint.url)
	}
	if scope.session != nil && endpoint.ready && !scope.session.Status().Reachable {
		scope.session.Mirror.Retry()
	}
	return nil
}

// closeSession closes the session of a cluster, if there is one.
func (r *Reconciler) closeSession(ctx context.Context, key slurm.Key, why string) {
	if _, open := r.Pool.Get(key); open {
		r.Pool.Remove(key)
		log.FromContext(ctx).Info("closed Slurm session", "why", why)
	}
}
