// Package certificate manages the serving certificate of the webhook, without depending on anything else in the
// cluster.
//
// Each replica repeats the same loop: read the Secret with the certificates; if a rotation step is due, take it and
// write the Secret, which succeeds for only one replica; update the webhook configurations to trust the certificates in
// the Secret; serve the current one.
package certificate

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/slurm-operator/slurm-operator/internal/certificate"
)

// Options are the settings of a Keeper.
type Options struct {
	// Service is the name of the webhook's Service, which API servers call.
	Service string
	// Namespace is that of the Service and of the Secret.
	Namespace string
	// Secret is the name of the Secret. It must exist; it may be empty.
	Secret string
	// Configuration is the name of the ValidatingWebhookConfiguration and of the MutatingWebhookConfiguration.
	Configuration string
	// Lifetime of a certificate.
	Lifetime time.Duration
}

// maxInterval is the maximum time between two reconciles, and so how long an overwritten configuration stays
// unrepaired.
const maxInterval = 10 * time.Second

// reconcileTimeout is the deadline of a reconcile, in case the API server does not answer.
const reconcileTimeout = 10 * time.Second

// A Keeper manages the certificate of one replica.
type Keeper struct {
	client   client.Client
	clock    clock.Clock
	options  Options
	schedule certificate.Schedule
	served   atomic.Pointer[tls.Certificate]
}

// NewKeeper returns a Keeper. The client must read from the API server, because a cache may be stale.
func NewKeeper(client client.Client, clock clock.Clock, options Options) *Keeper {
	return &Keeper{
		client: client, clock: clock, options: options,
		schedule: certificate.Schedule{
			Names: []string{options.Service + "." + options.Namespace + ".svc"}, Lifetime: options.Lifetime,
		},
	}
}

// Start reconciles periodically until the context is cancelled. Errors are logged and retried: the current certificate
// stays valid for months.
func (k *Keeper) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("certificate")
	interval := min(maxInterval, k.options.Lifetime/50)
	for {
		err := k.reconcile(ctx)
		if apierrors.IsConflict(err) {
			continue // another replica was faster; read its result
		}
		if err != nil && ctx.Err() == nil {
			logger.Error(err, "renewing the certificate")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.clock.After(interval):
		}
	}
}

// NeedLeaderElection returns false, because every replica runs a Keeper.
func (*Keeper) NeedLeaderElection() bool { return false }

// GetCertificate returns the current certificate, for a tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	served := k.served.Load()
	if served == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return served, nil
}

// Ready returns an error until there is a certificate that API servers trust.
func (k *Keeper) Ready(*http.Request) error {
	_, err := k.GetCertificate(nil)
	return err
}

// reconcile updates the Secret, the configurations and this replica, in this order, so that a certificate is served
// only when it is trusted.
func (k *Keeper) reconcile(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	now := k.clock.Now()
	set, err := k.rotate(ctx, now)
	if err != nil {
		return err
	}
	bundle := base64.StdEncoding.EncodeToString(set.Bundle(now))
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		if err := k.trust(ctx, kind, bundle); err != nil {
			return err
		}
	}
	served, err := set.Current.Load()
	if err != nil {
		return fmt.Errorf("reading the certificate in Secret %s: %w", k.options.Secret, err)
	}
	k.served.Store(served)
	return nil
}

// rotate reads the Secret and takes the rotation step that is due, if any.
func (k *Keeper) rotate(ctx context.Context, now time.Time) (certificate.Set, error) {
	secret := &corev1.Secret{}
	if err := k.client.Get(ctx, client.ObjectKey{Namespace: k.options.Namespace, Name: k.options.Secret},
		secret); err != nil {
		return certificate.Set{}, fmt.Errorf("reading Secret %s, which has to exist, if only empty: %w",
			k.options.Secret, err)
	}
	next, changed, err := k.schedule.Advance(certificate.ReadSet(secret.Data), now)
	if err != nil || !changed {
		return next, err
	}
	secret.Data = next.Data()
	if err := k.client.Update(ctx, secret); err != nil {
		return certificate.Set{}, fmt.Errorf("writing Secret %s: %w", k.options.Secret, err)
	}
	return next, nil
}

// trust makes all webhooks of a configuration trust a bundle. The object is unstructured, so that fields of newer API
// versions are kept.
func (k *Keeper) trust(ctx context.Context, kind, bundle string) error {
	configuration := &unstructured.Unstructured{}
	configuration.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind,
	})
	if err := k.client.Get(ctx, client.ObjectKey{Name: k.options.Configuration}, configuration); err != nil {
		return fmt.Errorf("reading %s %s: %w", kind, k.options.Configuration, err)
	}
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind, k.options.Configuration, err)
	}
	changed := false
	for _, each := range webhooks {
		webhook, ok := each.(map[string]any)
		if was, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle"); !ok || was == bundle {
			continue
		}
		if err := unstructured.SetNestedField(webhook, bundle, "clientConfig", "caBundle"); err != nil {
			return fmt.Errorf("changing %s %s: %w", kind, k.options.Configuration, err)
		}
		changed = true
	}
	if !changed {
		return nil
	}
	if err := unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks"); err != nil {
		return fmt.Errorf("changing %s %s: %w", kind, k.options.Configuration, err)
	}
	if err := k.client.Update(ctx, configuration); err != nil {
		return fmt.Errorf("writing %s %s: %w", kind, k.options.Configuration, err)
	}
	return nil
}
