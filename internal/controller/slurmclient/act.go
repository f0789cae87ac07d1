package slurmclient

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// act opens, replaces or closes the session.
func (r *Reconciler) act(ctx context.Context, scope *scope, key slurm.Key) error {
	if scope.awaitsAccounting && scope.controller.DeletionTimestamp == nil {
		return nil // slurmctld keeps running with its keys, and so does the session
	}
	endpoint, problem := decide(scope)
	if problem != nil {
		r.closeSession(ctx, key, problem.message)
		scope.session = nil
		return nil
	}
	secured, err := endpoint.server.Client()
	if err != nil {
		return err
	}
	before := scope.session
	err = r.Pool.Set(key,
		slurm.Settings{Identity: endpoint.identity(scope.jwtKey), Wrap: trace.Slurm,
			Dial: func() (slurm.Client, error) {
				return r.Dial(rest.Options{
					URL: endpoint.url, Address: endpoint.address, TLS: secured,
					Metrics: endpoint.metrics, MetricsAddress: endpoint.metricsAddress,
					Token:    r.verified(scope.restAPI, endpoint.address, tokens(scope.jwtKey, r.Clock)),
					Observer: r.Requests(key), NodeChanges: r.nodeChanges(scope.controller, scope.jwtKey),
				})
			}})
	if err != nil {
		return err
	}
	if scope.session, _ = r.Pool.Get(key); scope.session != before {
		log.FromContext(ctx).Info("opened Slurm session", "url", endpoint.url, "address", endpoint.address)
	}
	if scope.session != nil && endpoint.ready && !scope.session.Status().Reachable {
		scope.session.Mirror.Retry()
	}
	return nil
}

// verified returns a token source that checks before each request that the address is still that of the RestApi's own
// Service. A cluster IP may be given to another Service as soon as this one is deleted, and the session may live
// slightly longer.
func (r *Reconciler) verified(restAPI *slinkyv1beta1.RestApi, address string,
	source rest.TokenSource) rest.TokenSource {
	return func(ctx context.Context) (string, error) {
		service, err := reference.Object(ctx, r.Client, restAPI.Namespace, naming.RestAPI(restAPI.Name),
			&corev1.Service{})
		if err != nil {
			return "", err
		}
		switch current, problem := restAddress(restAPI, service); {
		case problem != nil:
			return "", fmt.Errorf("%w: %s", slurm.Unreachable, problem.message)
		case current != address:
			return "", fmt.Errorf("%w: Service %s has changed its address from %s to %s", slurm.Unreachable, service.Name,
				address, current)
		}
		return source(ctx)
	}
}

// closeSession closes the session of a cluster, if there is one.
func (r *Reconciler) closeSession(ctx context.Context, key slurm.Key, why string) {
	if _, open := r.Pool.Get(key); open {
		r.Pool.Remove(key)
		log.FromContext(ctx).Info("closed Slurm session", "why", why)
	}
}
