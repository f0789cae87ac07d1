// Package operator wires the manager together: options, scheme, health, metrics and, as the only package that knows them
// all, the controllers.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/cluster"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/process"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	slurmrest "github.com/slurm-operator/slurm-operator/internal/slurm/rest"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups=core,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// leaseName names the lease by which replicas agree on their leader.
const leaseName = "slurm-operator"

// Options are what an administrator can choose about the manager.
type Options struct {
	process.Settings
	// PprofAddress is where profiles are served; empty serves none.
	PprofAddress string
	// Images are what the containers run unless a spec says otherwise.
	Images naming.Images
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string
	// SlurmClient says how requests to Slurm are repeated, and Mirror how often Slurm is asked.
	SlurmClient SlurmClient
	Mirror      slurm.MirrorOptions
	// SlurmLog takes a line for each request to slurmrestd; it may be zero.
	SlurmLog logr.Logger
	// Dial makes a client for slurmrestd; nil for the real one. Agent asks the agent beside slurmctld; nil for the real one.
	Dial  func(slurmrest.Options) (slurm.Client, error)
	Agent func(ctx context.Context, address string) (cluster.AgentState, error)
	// Registerer takes the metrics; nil for the one that is served.
	Registerer prometheus.Registerer
	// Workers is how many objects of each kind are reconciled at the same time, and WorkersByKind how many of those kinds that
	// are to have another number.
	Workers       int
	WorkersByKind map[string]int
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
	controllers, err := controllerOptions(options)
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  Scheme(),
		Cache:                   CacheOptions(options.Settings),
		NewClient:               newClient,
		Controller:              controllers,
		Metrics:                 options.Metrics(),
		PprofBindAddress:        options.PprofAddress,
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
	if err := addReadiness(manager); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	if err := addControllers(ctx, manager, options.withDefaults()); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// addReadiness makes a replica ready when it has seen what there is, whether or not it leads.
func addReadiness(manager ctrl.Manager) error {
	var synced atomic.Bool
	if err := manager.Add(everywhere(func(ctx context.Context) error {
		synced.Store(manager.GetCache().WaitForCacheSync(ctx))
		<-ctx.Done()
		return nil
	})); err != nil {
		return err
	}
	return manager.AddReadyzCheck("caches", func(*http.Request) error {
		if !synced.Load() {
			return errors.New("the caches are not filled yet; if this stays so, look in the log for what may not be listed")
		}
		return nil
	})
}

// everywhere is something that runs on all replicas.
type everywhere func(context.Context) error

// Start runs it.
func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection says that it does not wait to lead.
func (everywhere) NeedLeaderElection() bool { return false }

// reconcileTimeout bounds each reconcile, whatever the API server or Slurm does.
const reconcileTimeout = 30 * time.Second

// kinds are the resource types that have controllers.
func kinds() []string {
	var names []string
	for kind := range Scheme().KnownTypes(slinkyv1beta1.SchemeGroupVersion) {
		if Scheme().Recognizes(slinkyv1beta1.SchemeGroupVersion.WithKind(kind + "List")) {
			names = append(names, kind)
		}
	}
	slices.Sort(names)
	return names
}

func controllerOptions(options Options) (config.Controller, error) {
	byKind := map[string]int{}
	for kind, workers := range options.WorkersByKind {
		if !slices.Contains(kinds(), kind) || workers < 1 {
			return config.Controller{}, fmt.Errorf("%s=%d: the resource types are %s, and each has one worker or more", kind, workers, strings.Join(kinds(), ", "))
		}
		byKind[slinkyv1beta1.SchemeGroupVersion.WithKind(kind).GroupKind().String()] = workers
	}
	return config.Controller{
		MaxConcurrentReconciles: options.Workers,
		GroupKindConcurrency:    byKind,
		ReconciliationTimeout:   reconcileTimeout,
		// Names are checked for the whole process, in which a test may run several managers.
		SkipNameValidation: new(true),
		// A replica that does not lead fills its caches, so that it takes over without a delay.
		EnableWarmup: new(true),
	}, nil
}
