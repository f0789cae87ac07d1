// Package webhook serves admission: it reviews objects of ours before they are stored, and tells slurmd pods where in the network
// they are.
//
// The API server calls it for objects of the six kinds that are created or updated, never for deletions, and for pods that are
// bound to a node. Nothing depends on it: the CRDs carry what they can, the operator finds every mistake again, and an API server
// that cannot reach the webhook goes on without it. So there is no reason to fail here either: whatever cannot be looked up is left
// out.
//
// Objects are read one by one when they are needed, of Secrets and pods only the metadata. The only cache holds the names of
// NodeSets, so that pods in other namespaces, which may be thousands, cost no request.
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
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/process"
	"github.com/slurm-operator/slurm-operator/internal/webhook/certificate"
	"github.com/slurm-operator/slurm-operator/internal/webhook/review"
)

// Options are what an administrator can choose about the webhook.
type Options struct {
	// Port is where API servers call.
	Port int
	process.Settings
	// CertificateDirectory holds tls.crt and tls.key that somebody else keeps. Without it, Certificate says what is kept where.
	CertificateDirectory string
	Certificate          certificate.Options
}

// check tells what is missing.
func (o Options) check() error {
	switch own := o.Certificate; {
	case o.CertificateDirectory != "":
		return nil
	case own.Namespace == "":
		return errors.New("the namespace of the webhook is not known; set POD_NAMESPACE")
	case own.Service == "" || own.Secret == "" || own.Configuration == "":
		return errors.New("a certificate that the webhook keeps itself needs --service, --certificate-secret and --configuration; or set --certificate-directory")
	case own.Lifetime < time.Second:
		return errors.New("--certificate-lifetime must be a second or more")
	}
	return nil
}

// Run serves the webhook until the context ends.
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
	own := options.CertificateDirectory == ""
	if own {
		server.TLSOpts = append(server.TLSOpts, func(config *tls.Config) { config.GetCertificate = keeper.GetCertificate })
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
	serving := manager.GetWebhookServer().StartedChecker()
	if own {
		if err := manager.Add(keeper); err != nil {
			return err
		}
		serving = both(keeper.Ready, serving)
	}
	if err := errors.Join(addHealth(ctx, manager, serving), addWebhooks(manager, direct, options.Namespaces)); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// newScheme knows every kind that is reviewed or looked up.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(slinkyv1beta1.AddToScheme(scheme))
	return scheme
}

// addHealth makes the replica ready when it serves and knows the names of NodeSets.
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
				return errors.New("the NodeSets have not been listed yet; if this stays so, look in the log for what may not be listed")
			}
			return nil
		}),
	)
}

// both checks one thing and then another, which would fail noisily before the first is so.
func both(first, second healthz.Checker) healthz.Checker {
	return func(request *http.Request) error {
		if err := first(request); err != nil {
			return err
		}
		return second(request)
	}
}

// recoverPanics leaves panics to the HTTP server, which breaks off the request, and the API server goes on without an answer. The
// framework would answer that the object is refused.
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

// nodeSetMetadata is the kind of which the cache holds the metadata.
func nodeSetMetadata() *metav1.PartialObjectMetadata {
	return partial(slinkyv1beta1.SchemeGroupVersion.WithKind("NodeSet"))
}
