package slurmclient

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/certificate"
	"github.com/slurm-operator/slurm-operator/internal/jwt"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

func restAPI(name string, age time.Duration) *slinkyv1beta1.RestApi {
	restAPI := &slinkyv1beta1.RestApi{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(name),
		CreationTimestamp: metav1.NewTime(time.Unix(1_800_000_000, 0).Add(-age)),
	}}
	restAPI.Spec.Service.Port = 6820
	return restAPI
}

// A later RestApi, whatever its name and whether or not it is ready, does not replace the one in use: its slurmrestd
// would get the operator's token, and its answers would count.
func TestLaterRestApiDoesNotReplaceTheOneInUse(t *testing.T) {
	deleted := restAPI("deleted", 2*time.Hour)
	deleted.DeletionTimestamp = new(metav1.Now())
	type list = []*slinkyv1beta1.RestApi
	for name, test := range map[string]struct {
		restAPIs   list
		annotation string
		want       string
	}{
		"none":                               {},
		"the only one":                       {restAPIs: list{restAPI("any", 0)}, want: "any"},
		"the oldest":                         {restAPIs: list{restAPI("a", 0), restAPI("b", time.Hour)}, want: "b"},
		"not the cluster's name":             {restAPIs: list{restAPI("slurm", 0), restAPI("z", time.Hour)}, want: "z"},
		"the first of one age":               {restAPIs: list{restAPI("b", 0), restAPI("a", 0)}, want: "a"},
		"not a deleted one":                  {restAPIs: list{deleted, restAPI("a", 0)}, want: "a"},
		"a deleted one if there is no other": {restAPIs: list{deleted}, want: "deleted"},
		"the one that the Controller names": {
			restAPIs: list{restAPI("a", 0), restAPI("b", time.Hour)}, annotation: "a", want: "a",
		},
		"no other if that does not exist": {restAPIs: list{restAPI("a", 0)}, annotation: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slurm"}}
			if test.annotation != "" {
				controller.Annotations = map[string]string{slinkyv1beta1.AnnotationRestAPI: test.annotation}
			}
			var restAPIs []slinkyv1beta1.RestApi
			for _, restAPI := range test.restAPIs {
				restAPIs = append(restAPIs, *restAPI)
			}
			got := choose(controller, restAPIs)
			if got == nil != (test.want == "") || got != nil && got.Name != test.want {
				t.Errorf("chose %v", got)
			}
		})
	}
}

// service returns the Service of an owner.
func service(name, address string, owner client.Object) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: []metav1.OwnerReference{
			{UID: owner.GetUID(), Controller: new(true)},
		}},
		Spec: corev1.ServiceSpec{ClusterIP: address},
	}
}

// now is when the tests of decisions take place.
var now = time.Unix(1_800_000_000, 0)

// certificateOf returns the Secret with a certificate of a RestApi that is valid for an hour.
func certificateOf(t *testing.T, owner *slinkyv1beta1.RestApi) *corev1.Secret {
	t.Helper()
	return certificateAt(t, owner, now)
}

// certificateAt returns the same at another time.
func certificateAt(t *testing.T, owner *slinkyv1beta1.RestApi, at time.Time) *corev1.Secret {
	t.Helper()
	pair, err := certificate.NewPair([]string{naming.RestAPIHost(owner)}, at, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: service(naming.RestAPICertificate(owner), "", owner).ObjectMeta,
		Data:       certificate.Set{Current: pair}.Data(),
	}
}

// serverOf returns how the slurmrestd of a scope is verified.
func serverOf(t *testing.T, scope *scope) certificate.Server {
	t.Helper()
	server, problem := certificate.OfRestAPI(scope.restAPI, scope.certificate, scope.now)
	if problem != nil {
		t.Fatal(problem)
	}
	return server
}

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		change func(*scope)
		want   endpoint
		reason string
		says   string
	}{
		"no endpoint without a RestApi": {
			change: func(scope *scope) { scope.restAPI, scope.service = nil, nil },
			reason: slinkyv1beta1.ReasonNoRestAPI, says: "create one",
		},
		"no endpoint without the named RestApi": {
			change: func(scope *scope) {
				scope.restAPI, scope.service = nil, nil
				scope.controller.Annotations = map[string]string{slinkyv1beta1.AnnotationRestAPI: "b"}
			},
			reason: slinkyv1beta1.ReasonNoRestAPI, says: "annotation controller.slinky.slurm.net/rest-api names RestApi b",
		},
		"no endpoint without a key": {
			change: func(scope *scope) { scope.jwtKey = nil }, reason: slinkyv1beta1.ReasonReferenceNotFound, says: "key",
		},
		"no endpoint when the Controller is being deleted": {
			change: func(scope *scope) { scope.controller.DeletionTimestamp = new(metav1.Now()) },
			reason: slinkyv1beta1.ReasonConnecting, says: "being deleted",
		},
		"no endpoint before the Service exists": {
			change: func(scope *scope) { scope.service = nil },
			reason: slinkyv1beta1.ReasonConnecting, says: "Service a-restapi of RestApi a does not exist yet",
		},
		"no endpoint if the Service has no owner": {
			change: func(scope *scope) { scope.service.OwnerReferences = nil },
			reason: slinkyv1beta1.ReasonEndpointNotVerified, says: "Service a-restapi is not controlled by RestApi a",
		},
		"no endpoint if the Service belongs to an earlier RestApi": {
			change: func(scope *scope) { scope.service.OwnerReferences[0].UID = "before" },
			reason: slinkyv1beta1.ReasonEndpointNotVerified, says: "delete it",
		},
		"no endpoint if the Service is headless": {
			change: func(scope *scope) { scope.service.Spec.ClusterIP = corev1.ClusterIPNone },
			reason: slinkyv1beta1.ReasonEndpointNotVerified, says: "Service a-restapi has no cluster IP",
		},
		"no endpoint if the Service is a name in DNS": {
			change: func(scope *scope) {
				scope.service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "a.dev"}
			},
			reason: slinkyv1beta1.ReasonEndpointNotVerified, says: "Service a-restapi has no cluster IP",
		},
		"no endpoint before there is a certificate": {
			change: func(scope *scope) { scope.certificate = nil },
			reason: slinkyv1beta1.ReasonConnecting, says: "Secret a-restapi-tls with slurmrestd's certificate does not exist",
		},
		"no endpoint with a certificate of another owner": {
			change: func(scope *scope) { scope.certificate.OwnerReferences[0].UID = "b" },
			reason: slinkyv1beta1.ReasonCertificateInvalid, says: "not owned by RestApi a",
		},
		"no endpoint with an expired certificate": {
			change: func(scope *scope) { scope.now = now.Add(2 * time.Hour) },
			reason: slinkyv1beta1.ReasonCertificateInvalid, says: "no valid certificate",
		},
		"no endpoint without the named certificate": {
			change: func(scope *scope) {
				scope.restAPI.Spec.TLS.CertificateRef = &slinkyv1beta1.ObjectReference{Name: "mine"}
				scope.certificate = nil
			},
			reason: slinkyv1beta1.ReasonReferenceNotFound, says: "Secret mine, which spec.tls.certificateRef names",
		},
		"uses TLS even if plain HTTP is allowed": {
			change: func(scope *scope) { scope.restAPI.Spec.TLS.PlainHTTP = slinkyv1beta1.PlainHTTPAllowed },
			want:   endpoint{url: "https://a-restapi.ns.svc:6820", address: "10.96.0.7:6820"},
		},
		"connects to the cluster IP": {
			want: endpoint{url: "https://a-restapi.ns.svc:6820", address: "10.96.0.7:6820"},
		},
		"connects by IPv6": {
			change: func(scope *scope) { scope.service.Spec.ClusterIP = "fd00::7" },
			want:   endpoint{url: "https://a-restapi.ns.svc:6820", address: "[fd00::7]:6820"},
		},
		"knows that slurmrestd is ready": {
			change: func(scope *scope) {
				scope.restAPI.Status.Conditions = []metav1.Condition{
					{Type: slinkyv1beta1.ConditionReady, Status: metav1.ConditionTrue},
				}
			},
			want: endpoint{url: "https://a-restapi.ns.svc:6820", address: "10.96.0.7:6820", ready: true},
		},
		"queries slurmctld itself if its metrics are on": {
			change: func(scope *scope) {
				scope.controller.Spec.Metrics.Enabled = true
				scope.slurmctld = service("slurm-controller", "10.96.0.8", scope.controller)
			},
			want: endpoint{
				url: "https://a-restapi.ns.svc:6820", address: "10.96.0.7:6820",
				metrics: "http://slurm-controller.ns.svc:6817", metricsAddress: "10.96.0.8:6817",
			},
		},
		"ignores metrics of a Service that is not slurmctld's": {
			change: func(scope *scope) {
				scope.controller.Spec.Metrics.Enabled = true
				scope.slurmctld = service("slurm-controller", "10.96.0.8", scope.restAPI)
			},
			want: endpoint{url: "https://a-restapi.ns.svc:6820", address: "10.96.0.7:6820"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			controller := &slinkyv1beta1.Controller{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slurm", UID: "slurm"},
			}
			controller.Spec.Service.Port = 6817
			used := restAPI("a", 0)
			scope := &scope{
				controller: controller, restAPI: used, service: service("a-restapi", "10.96.0.7", used), jwtKey: []byte("key"),
				certificate: certificateOf(t, used), now: now,
			}
			if test.change != nil {
				test.change(scope)
			}
			got, problem := decide(scope)
			if test.reason == "" {
				test.want.server = serverOf(t, scope)
			}
			if got != test.want || problem == nil != (test.reason == "") {
				t.Fatalf("got %+v, %+v", got, problem)
			}
			if problem != nil && (problem.reason != test.reason || !strings.Contains(problem.message, test.says)) {
				t.Errorf("got %+v", problem)
			}
		})
	}
}

func TestSessionIdentityCoversConnectionSettings(t *testing.T) {
	seen := map[string]string{}
	for name, identity := range map[string]string{
		"this":                       endpoint{url: "a"}.identity([]byte("k")),
		"another URL":                endpoint{url: "b"}.identity([]byte("k")),
		"another key":                endpoint{url: "a"}.identity([]byte("l")),
		"other metrics":              endpoint{url: "a", metrics: "m"}.identity([]byte("k")),
		"another address":            endpoint{url: "a", address: "m"}.identity([]byte("k")),
		"another name":               endpoint{url: "a", server: certificate.Server{Name: "m"}}.identity([]byte("k")),
		"other certificates":         endpoint{url: "a", server: certificate.Server{Bundle: "m"}}.identity([]byte("k")),
		"another address of metrics": endpoint{url: "a", metricsAddress: "m"}.identity([]byte("k")),
	} {
		if other, twice := seen[identity]; twice {
			t.Errorf("%s and %s have the same identity", name, other)
		}
		seen[identity] = name
	}
	if (endpoint{url: "a"}).identity([]byte("k")) != (endpoint{url: "a", ready: true}).identity([]byte("k")) {
		t.Error("a RestApi that becomes ready would replace the session")
	}
}

func TestTokenIsReusedForHalfItsLifetime(t *testing.T) {
	key := make([]byte, 32)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	source := tokens(key, clock)
	token := func() string {
		text, err := source(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := token()
	parsed, err := jwt.Parse(key, first)
	if err != nil || parsed.User != "slurm" || parsed.Expires.Sub(parsed.Issued) != tokenLifetime {
		t.Errorf("got token %+v, error %v", parsed, err)
	}
	clock.SetTime(parsed.Issued.Add(tokenLifetime/2 - time.Second))
	if token() != first {
		t.Error("a fresh token was not reused")
	}
	clock.SetTime(parsed.Issued.Add(tokenLifetime / 2))
	if token() == first {
		t.Error("an old token was reused")
	}
	clock.SetTime(parsed.Issued.Add(-time.Hour))
	if again, _ := jwt.Parse(key, token()); !again.Issued.Before(parsed.Issued) {
		t.Error("a token from the future was reused after the clock was set back")
	}
}
