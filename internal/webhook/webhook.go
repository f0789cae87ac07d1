// Package webhook serves the admission webhooks: they review custom resources before they are stored, and add the
// topology to slurmd pods.
//
// The API server calls them when a custom resource is created or updated, never for deletions, and when a pod is bound
// to a Kubernetes node. Nothing depends on them: the CRDs validate what they can, the operator detects every mistake
// again, and an API server that cannot reach the webhook continues without it. So the webhook does not fail either: a
// check that needs an unreadable object is skipped.
//
// Objects are read individually when they are needed; of Secrets and pods only the metadata. The only cache holds the
// metadata of NodeSets, so that pods in other namespaces, which may be thousands, cost no requests.
package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/process"
	"github.com/slurm-operator/slurm-operator/internal/webhook/certificate"
	"github.com/slurm-operator/slurm-operator/internal/webhook/review"
)

// Options are the settings of the webhook.
type Options struct {
	// Port is the port for API servers.
	Port int
	process.Settings
	// CertificateDirectory holds tls.crt and tls.key that are managed externally. If it is empty, the webhook manages
	// its own certificate according to Certificate.
	CertificateDirectory string
	Certificate          certificate.Options
}

// check returns an error if a required option is missing.
func (o Options) check() error {
	switch own := o.Certificate; {
	case o.CertificateDirectory != "":
		return nil
	case own.Namespace == "":
		return errors.New("the namespace of the webhook is not known; set POD_NAMESPACE")
	case own.Service == "" || own.Secret == "" || own.Configuration == "":
		return errors.New(
			"a certificate that the webhook renews itself needs --service, --certificate-secret and --configuration; " +
				"or set --certificate-directory")
	case own.Lifetime < time.Second:
		return errors.New("--certificate-lifetime must be a second or more")
	}
	return nil
}

// Run serves the webhook until the context is cancelled.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	if err := options.check(); err != nil {
		return err
	}
	direct, err := client.New(config, client.Options{Scheme: newScheme()})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	server := webhook.Options{Port: options.Port, CertDir: options.CertificateDirectory}
	keeper := certificate.NewKeeper(direct, clock.RealClock{}, options.Certificate)
	own, served := options.CertificateDirectory == "", fromDirectory(options.CertificateDirectory)
	if own {
		served = func() (*tls.Certificate, error) { return keeper.GetCertificate(nil) }
		server.TLSOpts = append(server.TLSOpts,
			func(config *tls.Config) { config.GetCertificate = keeper.GetCertificate })
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 direct.Scheme(),
		Cache:                  options.Cache(),
		Metrics:                options.Metrics(),
		HealthProbeBindAddress: options.HealthAddress,
		WebhookServer:          webhook.NewServer(server),
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := crmetrics.Registry.Register(newExpiry(served)); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	serving := manager.GetWebhookServer().StartedChecker()
	if own {
		if err := manager.Add(keeper); err != nil {
			return err
		}
		serving = both(keeper.Ready, serving)
	}
	if err := errors.Join(addHealth(ctx, manager, serving),
		addWebhooks(manager, direct, options.Namespaces)); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// newScheme returns a scheme with every type that is reviewed or looked up.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(slinkyv1beta1.AddToScheme(scheme))
	return scheme
}

// addHealth makes the replica ready when it serves and its cache of NodeSets is synced.
func addHealth(ctx context.Context, manager ctrl.Manager, serving healthz.Checker) error {
	informer, err := manager.GetCache().GetInformer(ctx, nodeSetMetadata(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching NodeSets: %w", err)
	}
	return errors.Join(
		manager.AddHealthzCheck("ping", healthz.Ping),
		manager.AddReadyzCheck("server", serving),
		manager.AddReadyzCheck("cache", func(*http.Request) error {
			if !informer.HasSynced() {
				return errors.New(
					"the NodeSets have not been listed yet; if this stays so, look in the log for what may not be " +
						"listed")
			}
			return nil
		}),
	)
}

// both runs a second check only if the first succeeds, because it would log errors until then.
func both(first, second healthz.Checker) healthz.Checker {
	return func(request *http.Request) error {
		if err := first(request); err != nil {
			return err
		}
		return second(request)
	}
}

// recoverPanics is false, so that the HTTP server aborts the request after a panic and the API server continues without
// an answer. The framework would reject the object.
const recoverPanics = false

func addWebhooks(manager ctrl.Manager, reader client.Reader, namespaces []string) error {
	search := searcher{reader: reader, namespaces: namespaces, clock: clock.RealClock{}}
	return errors.Join(
		validate(manager, &slinkyv1beta1.Accounting{}, review.Accountings, search),
		validate(manager, &slinkyv1beta1.Controller{}, review.Controllers, search),
		validate(manager, &slinkyv1beta1.LoginSet{}, review.LoginSets, search),
		validate(manager, &slinkyv1beta1.NodeSet{}, review.NodeSets, search),
		validate(manager, &slinkyv1beta1.RestApi{}, review.RestAPIs, search),
		validate(manager, &slinkyv1beta1.Token{}, review.Tokens, search),
		bind(manager, reader, search),
	)
}

// nodeSetMetadata returns the type of which the cache holds the metadata.
func nodeSetMetadata() *metav1.PartialObjectMetadata {
	return partial(slinkyv1beta1.SchemeGroupVersion.WithKind("NodeSet"))
}
