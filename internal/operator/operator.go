// Package operator sets up the manager: options, scheme, health, metrics and, as the only package that imports them
// all, the controllers.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/process"
	"github.com/slurm-operator/slurm-operator/internal/provisioning"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	slurmrest "github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/window"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups=core,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// leaseName is the name of the leader election lease.
const leaseName = "slurm-operator"

// Options are the settings of the manager.
type Options struct {
	process.Settings
	// PprofAddress is where profiles are served; none if empty.
	PprofAddress string
	// Images are the default images of the containers.
	Images naming.Images
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string
	// SlurmClient configures retries of requests to Slurm, and Mirror how often Slurm is polled.
	SlurmClient SlurmClient
	Mirror      slurm.MirrorOptions
	// SlurmLog logs each request to slurmrestd; it may be zero.
	SlurmLog logr.Logger
	// Dial creates a client for slurmrestd, and Agent queries the agent next to slurmctld; nil for the real ones.
	Dial  func(slurmrest.Options) (slurm.Client, error)
	Agent func(ctx context.Context, address string, key []byte) (agent.Report, error)
	// NewQueue creates the work queues, and NewCache the cache of the API server; nil for the default ones.
	NewQueue retry.NewQueue
	NewCache cache.NewCacheFunc
	// Registerer registers the metrics; nil for the registry that is served.
	Registerer prometheus.Registerer
	// Workers is how many objects of each resource type are reconciled in parallel, and WorkersByKind overrides it for
	// individual kinds.
	Workers       int
	WorkersByKind map[string]int
	// LeaderElection makes only one of several replicas active.
	LeaderElection bool
	// LeaderElectionNamespace is the namespace of the lease; empty for the pod's own namespace.
	LeaderElectionNamespace string
}

// Scheme returns the scheme with every type that the operator reads or writes. Do not change it.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(slinkyv1beta1.AddToScheme(scheme))
	utilruntime.Must(provisioning.AddToScheme(scheme))
	return scheme
})

// Run runs the manager until the context is cancelled.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	controllers, err := controllerOptions(options)
	if err != nil {
		return err
	}
	pods := window.New(firstWindow, leastWindow, mostWindow)
	config = rest.CopyConfig(config)
	config.Wrap(pods.Transport)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  Scheme(),
		Cache:                   CacheOptions(options.Settings),
		NewCache:                options.NewCache,
		NewClient:               newClient,
		Controller:              controllers,
		Metrics:                 options.Metrics(),
		PprofBindAddress:        options.PprofAddress,
		HealthProbeBindAddress:  options.HealthAddress,
		LeaderElection:          options.LeaderElection,
		LeaderElectionID:        leaseName,
		LeaderElectionNamespace: options.LeaderElectionNamespace,
		// The process exits right after the manager, so the lease can be released for the next leader at once.
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
	if err := addControllers(ctx, manager, options.withDefaults(), pods); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// These are the sizes of the window for creations and deletions of pods: at first, and its limits. It grows to the
// largest within two hundred requests, if none is refused.
const firstWindow, leastWindow, mostWindow = 64, 8, 256

// addReadiness makes a replica ready when its caches are synced, whether or not it is the leader.
func addReadiness(manager ctrl.Manager) error {
	var synced atomic.Bool
	if err := manager.Add(onAllReplicas(func(ctx context.Context) error {
		synced.Store(manager.GetCache().WaitForCacheSync(ctx))
		<-ctx.Done()
		return nil
	})); err != nil {
		return err
	}
	return manager.AddReadyzCheck("caches", func(*http.Request) error {
		if !synced.Load() {
			return errors.New(
				"the caches are not filled yet; if this stays so, look in the log for what may not be listed")
		}
		return nil
	})
}

// onAllReplicas is a function that runs on all replicas.
type onAllReplicas func(context.Context) error

// Start runs the function.
func (e onAllReplicas) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection returns false, because the function also runs on replicas that do not lead.
func (onAllReplicas) NeedLeaderElection() bool { return false }

// reconcileTimeout is the deadline of each reconcile, in case the API server or Slurm does not answer.
const reconcileTimeout = 30 * time.Second

// kinds returns the resource types that have controllers.
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
			return config.Controller{}, fmt.Errorf("%s=%d: the resource types are %s, and each has one worker or more",
				kind, workers, strings.Join(kinds(), ", "))
		}
		byKind[slinkyv1beta1.SchemeGroupVersion.WithKind(kind).GroupKind().String()] = workers
	}
	return config.Controller{
		MaxConcurrentReconciles: options.Workers,
		GroupKindConcurrency:    byKind,
		ReconciliationTimeout:   reconcileTimeout,
		// Names must be unique in the process, but tests run several managers in one.
		SkipNameValidation: new(true),
		// A standby replica syncs its caches, so that it takes over without delay.
		EnableWarmup: new(true),
	}, nil
}
