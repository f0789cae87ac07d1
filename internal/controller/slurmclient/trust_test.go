package slurmclient

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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
			var tokens atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
				if request.Header.Get("X-SLURM-USER-TOKEN") != "" {
					tokens.Add(1)
				}
			}))
			t.Cleanup(server.Close)
			host, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			used := restAPI("a", 0)
			number, err := strconv.ParseInt(port, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			used.Spec.Service.Port = int32(number)
			own := service("a-restapi", host, used)
			reconciler := &Reconciler{Client: fake.NewClientBuilder().WithObjects(own).Build()}
			address, problem := restAddress(used, own)
			if problem != nil {
				t.Fatal(problem)
			}
			session, err := rest.New(rest.Options{
				URL: "http://a-restapi.ns.svc:" + port, Address: address,
				Token: reconciler.verified(used, address, tokensOf(t)),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(session.Close)
			if _, err := session.Diag(t.Context()); !errors.Is(err, slurm.Malformed) || tokens.Swap(0) != 1 {
				t.Fatalf("the server did not get a token: %v", err)
			}
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

func tokensOf(t *testing.T) rest.TokenSource {
	t.Helper()
	return tokens(make([]byte, 32), clock.RealClock{})
}
