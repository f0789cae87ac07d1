package slurmclient

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/jwt"
)

func restAPI(name string, isReady bool) slinkyv1beta1.RestApi {
	restAPI := slinkyv1beta1.RestApi{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	restAPI.Spec.Service.Port = 6820
	if isReady {
		restAPI.Status.Conditions = []metav1.Condition{
			{Type: slinkyv1beta1.ConditionReady, Status: metav1.ConditionTrue},
		}
	}
	return restAPI
}

func TestDecide(t *testing.T) {
	key := []byte("key")
	tests := map[string]struct {
		restAPIs []slinkyv1beta1.RestApi
		key      []byte
		deleted  bool
		metrics  bool
		want     endpoint
		none     bool
	}{
		"no endpoint without a RestApi": {key: key, none: true},
		"no endpoint without a key": {
			restAPIs: []slinkyv1beta1.RestApi{restAPI("a", true)}, none: true,
		},
		"no endpoint when the Controller is being deleted": {
			restAPIs: []slinkyv1beta1.RestApi{restAPI("a", true)}, key: key, deleted: true, none: true,
		},
		"uses an unready RestApi if there is no other": {
			restAPIs: []slinkyv1beta1.RestApi{restAPI("a", false)}, key: key,
			want: endpoint{url: "http://a-restapi.ns:6820"},
		},
		"prefers a ready RestApi": {
			restAPIs: []slinkyv1beta1.RestApi{restAPI("a", false), restAPI("b", true)}, key: key, want: endpoint{
				url: "http://b-restapi.ns:6820", ready: true,
			},
		},
		"prefers the first by name": {
			restAPIs: []slinkyv1beta1.RestApi{restAPI("b", true), restAPI("a", true)}, key: key, want: endpoint{
				url: "http://a-restapi.ns:6820", ready: true,
			},
		},
		"queries slurmctld itself if its metrics are on": {
			restAPIs: []slinkyv1beta1.RestApi{restAPI("a", true)}, key: key, metrics: true,
			want: endpoint{url: "http://a-restapi.ns:6820", ready: true, metrics: "http://slurm-controller.ns:6817"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slurm"}}
			controller.Spec.Service.Port = 6817
			controller.Spec.Metrics.Enabled = test.metrics
			if test.deleted {
				controller.DeletionTimestamp = new(metav1.Now())
			}
			got, found := decide(&scope{controller: controller, restAPIs: test.restAPIs, jwtKey: test.key})
			if got != test.want || found == test.none {
				t.Errorf("got %+v, %v", got, found)
			}
		})
	}
}

func TestSessionIdentityCoversConnectionSettings(t *testing.T) {
	seen := map[string]string{}
	for name, identity := range map[string]string{
		"this":          endpoint{url: "a"}.identity([]byte("k")),
		"another URL":   endpoint{url: "b"}.identity([]byte("k")),
		"another key":   endpoint{url: "a"}.identity([]byte("l")),
		"other metrics": endpoint{url: "a", metrics: "m"}.identity([]byte("k")),
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
