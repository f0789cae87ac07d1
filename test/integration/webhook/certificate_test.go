//go:build integration

package webhook_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// Three replicas that start at the same time with an empty Secret agree on one certificate, which both configurations
// trust.
func TestReplicasAgreeOnOneCertificate(t *testing.T) {
	world := newWorld(t, options{required: true})
	var replicas []*replica
	for range 3 {
		replicas = append(replicas, world.start(t))
	}
	for _, replica := range replicas {
		replica.ready(t)
	}
	bundles, err := world.trusted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, bundle := range bundles {
		if count := bytes.Count(bundle, []byte("BEGIN CERTIFICATE")); count != 1 {
			t.Errorf("a configuration trusts %d certificates, want 1", count)
		}
	}
	secret := &corev1.Secret{}
	if err := world.Get(t.Context(), client.ObjectKey{Namespace: world.namespace, Name: secretName},
		secret); err != nil {
		t.Fatal(err)
	}
	for _, replica := range replicas {
		served, err := world.handshake(t.Context(), replica, bundles[0])
		if err != nil {
			t.Fatalf("the replica at %s is not trusted: %v", replica.address, err)
		}
		if kept, _ := pem.Decode(secret.Data["tls.crt"]); kept == nil || !bytes.Equal(served.Raw, kept.Bytes) {
			t.Errorf("the replica at %s serves another certificate than the Secret holds", replica.address)
		}
	}
}

// trusted returns the CA bundle of each webhook in the configurations.
func (w *world) trusted(ctx context.Context) ([][]byte, error) {
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	name := client.ObjectKey{Name: w.namespace}
	if err := errors.Join(w.Get(ctx, name, validating), w.Get(ctx, name, mutating)); err != nil {
		return nil, err
	}
	var bundles [][]byte
	for _, webhook := range validating.Webhooks {
		bundles = append(bundles, webhook.ClientConfig.CABundle)
	}
	for _, webhook := range mutating.Webhooks {
		bundles = append(bundles, webhook.ClientConfig.CABundle)
	}
	return bundles, nil
}

// handshake connects to a replica like an API server that trusts a bundle, and returns the certificate.
func (w *world) handshake(ctx context.Context, replica *replica, bundle []byte) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: serviceName + "." + w.namespace + ".svc"}}
	connection, err := dialer.DialContext(ctx, "tcp", replica.address)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// Certificates are replaced twice during continuous requests, and none of the requests fails.
func TestNoRequestFailsWhenCertificatesRotate(t *testing.T) {
	const rotations = 2
	world := newWorld(t, options{required: true})
	replicas := []*replica{world.start(t, "--certificate-lifetime=24s"), world.start(t, "--certificate-lifetime=24s")}
	for _, replica := range replicas {
		replica.ready(t)
	}
	world.service.route(replicas[0].address, replicas[1].address)
	world.waitForReviews(t)

	ctx, stop := context.WithTimeout(t.Context(), pollTimeout)
	defer stop()
	var requesting, watching sync.WaitGroup
	requests := 0
	requesting.Go(func() {
		for ctx.Err() == nil {
			object := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: world.namespace}}
			if err := world.Create(ctx, object, client.DryRunAll); err != nil && ctx.Err() == nil {
				t.Errorf("request %d: %v", requests, err)
			}
			requests++
		}
	})
	for _, replica := range replicas {
		watching.Go(func() {
			if err := world.watch(ctx, replica, rotations); err != nil {
				t.Errorf("the replica at %s: %v", replica.address, err)
			}
		})
	}
	watching.Wait()
	stop()
	requesting.Wait()
	t.Logf("%d requests", requests)
}

// watch connects to a replica repeatedly until its certificate was replaced this many times.
func (w *world) watch(ctx context.Context, replica *replica, rotations int) error {
	seen := map[string]bool{}
	for len(seen) <= rotations {
		bundles, err := w.trusted(ctx)
		if err != nil {
			return err
		}
		certificate, err := w.handshake(ctx, replica, bundles[0])
		if err != nil {
			return fmt.Errorf("after %d certificates: %w", len(seen), err)
		}
		seen[certificate.SerialNumber.String()] = true
	}
	return nil
}

// Overwriting a configuration, as some tools do when they apply a manifest, does not disable the webhook.
func TestOverwrittenConfigurationIsRepaired(t *testing.T) {
	world := newWorld(t, options{})
	world.serve(t, "--certificate-lifetime=1m")
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: world.namespace},
	}
	if err := world.Get(t.Context(), client.ObjectKeyFromObject(configuration), configuration); err != nil {
		t.Fatal(err)
	}
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.CABundle = nil
	}
	if err := world.Update(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the configuration is repaired", func(ctx context.Context) error {
		if err := world.Get(ctx, client.ObjectKeyFromObject(configuration), configuration); err != nil {
			return err
		}
		for _, webhook := range configuration.Webhooks {
			if len(webhook.ClientConfig.CABundle) == 0 {
				return fmt.Errorf("webhook %s has no CA bundle", webhook.Name)
			}
		}
		return nil
	})
	world.waitForReviews(t)
}

// Emptying the Secret is how an administrator replaces a compromised certificate.
func TestEmptiedSecretGetsNewCertificate(t *testing.T) {
	world := newWorld(t, options{})
	replica := world.serve(t, "--certificate-lifetime=1m")
	known, err := world.trusted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	empty := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName, Namespace: world.namespace}}
	if err := world.Patch(t.Context(), empty,
		client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "/data"}]`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another certificate is served and trusted", func(ctx context.Context) error {
		bundles, err := world.trusted(ctx)
		if err != nil {
			return err
		}
		if _, err := world.handshake(ctx, replica, known[0]); err == nil {
			return errors.New("the certificate is still the old one")
		}
		_, err = world.handshake(ctx, replica, bundles[0])
		return err
	})
	world.waitForReviews(t)
}

// A certificate from files is served, and reloaded when it changes. It needs no Secret.
func TestCertificateDirectory(t *testing.T) {
	world := newWorld(t, options{})
	directory := t.TempDir()
	first := world.writeCertificate(t, directory)
	replica := world.start(t, "--certificate-directory="+directory, "--certificate-secret=", "--configuration=",
		"--service=")
	replica.ready(t)
	if _, err := world.handshake(t.Context(), replica, first); err != nil {
		t.Fatal(err)
	}
	second := world.writeCertificate(t, directory)
	eventually(t, "the new certificate is served", func(ctx context.Context) error {
		_, err := world.handshake(ctx, replica, second)
		return err
	})
}

// writeCertificate writes tls.crt and tls.key and returns the certificate.
func (w *world) writeCertificate(t *testing.T, directory string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{serviceName + "." + w.namespace + ".svc"},
		NotAfter: time.Now().Add(time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	for name, content := range map[string][]byte{
		"tls.crt": certificate, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	} {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate
}
