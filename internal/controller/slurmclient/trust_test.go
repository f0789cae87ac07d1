package slurmclient

import (
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/certificate"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
)

// I23: if the Service is deleted or replaced while a session is open, its address may be another server's, which gets
// no further request.
func TestOpenSessionSendsNoTokenAfterServiceChanges(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Service)
		says   string
	}{
		"deleted":           {nil, "does not exist"},
		"has another owner": {func(service *corev1.Service) { service.OwnerReferences[0].UID = "b" }, "not controlled by"},
		"has no owner":      {func(service *corev1.Service) { service.OwnerReferences = nil }, "not controlled by"},
		"is headless": {
			func(service *corev1.Service) { service.Spec.ClusterIP = corev1.ClusterIPNone }, "has no cluster IP",
		},
		"has another address": {func(service *corev1.Service) { service.Spec.ClusterIP = "10.96.0.9" }, "has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			used := restAPI("a", 0)
			secret := certificateAt(t, used, time.Now())
			server, tokens := listen(t, secret)
			own, session, reconciler := open(t, used, secret, server.Listener.Addr())
			if _, err := session.Diag(t.Context()); !errors.Is(err, slurm.Malformed) || tokens.Swap(0) != 1 {
				t.Fatalf("the server did not get a token: %v", err)
			}
			var err error
			if test.change == nil {
				err = reconciler.Client.Delete(t.Context(), own)
			} else {
				test.change(own)
				err = reconciler.Client.Update(t.Context(), own)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := session.Diag(t.Context()); !errors.Is(err, slurm.Unreachable) ||
				!strings.Contains(err.Error(), test.says) {
				t.Errorf("error is %v", err)
			}
			if tokens.Load() > 0 {
				t.Error("the server got a token")
			}
		})
	}
}

// A server at the cluster IP gets a token only if it has the certificate of the RestApi.
func TestTokenIsSentOnlyWithTheCertificateOfTheRestApi(t *testing.T) {
	used := restAPI("a", 0)
	secret, another := certificateAt(t, used, time.Now()), certificateAt(t, used, time.Now())
	for name, test := range map[string]struct {
		served *corev1.Secret // nil for plain HTTP
		sent   int64
	}{
		"its certificate":                             {secret, 1},
		"another certificate with the same name":      {another, 0},
		"the same name, of another RestApi":           {certificateAt(t, restAPI("b", 0), time.Now()), 0},
		"plain HTTP, as pods of earlier versions use": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server, tokens := listen(t, test.served)
			_, session, _ := open(t, used, secret, server.Listener.Addr())
			_, err := session.Diag(t.Context())
			if sent := tokens.Load(); sent != test.sent {
				t.Errorf("%d tokens were sent", sent)
			}
			if test.sent == 0 && !errors.Is(err, slurm.Unreachable) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// listen starts a server that counts tokens, with the certificate of a Secret, or in plain HTTP if it is nil.
func listen(t *testing.T, secret *corev1.Secret) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	tokens := &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		if request.Header.Get("X-SLURM-USER-TOKEN") != "" {
			tokens.Add(1)
		}
	}))
	server.Config.ErrorLog = log.New(t.Output(), "", 0)
	t.Cleanup(server.Close)
	if secret == nil {
		server.Start()
		return server, tokens
	}
	pair, err := certificate.ReadSet(secret.Data).Current.Load()
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{*pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	return server, tokens
}

// open returns the Service of a RestApi at an address, and a session with it as the controller opens it.
func open(t *testing.T, used *slinkyv1beta1.RestApi, secret *corev1.Secret, address net.Addr) (*corev1.Service,
	slurm.Client, *Reconciler) {
	t.Helper()
	server := address.(*net.TCPAddr)
	used.Spec.Service.Port = int32(server.Port) //nolint:gosec // a port
	own := service("a-restapi", server.IP.String(), used)
	var options rest.Options
	captured := errors.New("the mirror would send requests of its own")
	reconciler := &Reconciler{
		Client: fake.NewClientBuilder().WithObjects(own).Build(), Clock: clock.RealClock{},
		Pool: slurm.NewPool(slurm.MirrorOptions{}), Requests: func(slurm.Key) slurm.Observer { return nil },
		Dial: func(given rest.Options) (slurm.Client, error) {
			options = given
			return nil, captured
		},
	}
	if err := reconciler.act(t.Context(), &scope{
		controller: &slinkyv1beta1.Controller{}, restAPI: used, service: own, certificate: secret,
		jwtKey: make([]byte, 32), now: time.Now(),
	}, slurm.Key{Namespace: "ns", Name: "slurm"}); !errors.Is(err, captured) {
		t.Fatal(err)
	}
	session, err := rest.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return own, session, reconciler
}
