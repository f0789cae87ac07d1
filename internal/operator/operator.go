// Package operator wires the manager together: options, scheme, health, metrics and, as the only package that knows them
// all, the controllers.
package operator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// leaseName names the lease by which replicas agree on their leader.
const leaseName = "slurm-operator"

// Options are what an administrator can choose about the manager.
type Options struct {
	// MetricsAddress is where metrics are served; "0" serves none.
	MetricsAddress string
	// HealthAddress is where /healthz and /readyz are served.
	HealthAddress string
	// LeaderElection lets only one of several replicas act.
	LeaderElection bool
	// LeaderElectionNamespace is where the lease of the leader lies; empty for the pod's own namespace.
	LeaderElectionNamespace string
}

// Scheme knows every kind that the operator reads or writes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(slinkyv1beta1.AddToScheme(scheme))
	return scheme
}

// Run runs the manager until the context ends.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  Scheme(),
		Metrics:                 metricsserver.Options{BindAddress: options.MetricsAddress},
		HealthProbeBindAddress:  options.HealthAddress,
		LeaderElection:          options.LeaderElection,
		LeaderElectionID:        leaseName,
		LeaderElectionNamespace: options.LeaderElectionNamespace,
		// The process ends right after the manager, so the lease may be given up for the next leader at once.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := manager.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	if err := manager.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	return manager.Start(ctx)
}
