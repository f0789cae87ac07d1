package slurmclient

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

func TestReachableCondition(t *testing.T) {
	failed := func(kind slurm.Kind) slurm.Status {
		return slurm.Status{Err: &slurm.Error{Kind: kind, Op: "ping", Err: errors.New("no")}}
	}
	for name, test := range map[string]struct {
		state  slurm.Status
		is     metav1.ConditionStatus
		reason string
		says   string
	}{
		"answers": {
			slurm.Status{Reachable: true}, metav1.ConditionTrue, slinkyv1beta1.ReasonConnected, "slurmctld answers",
		},
		"has a long queue": {
			slurm.Status{Reachable: true, Queue: slurm.QueueReport{Took: 9 * time.Second}}, metav1.ConditionTrue,
			slinkyv1beta1.ReasonConnected, "set spec.metrics.enabled",
		},
		"was not queried yet": {
			slurm.Status{}, metav1.ConditionUnknown, slinkyv1beta1.ReasonConnecting, "first answer",
		},
		"is down": {
			failed(slurm.ControllerDown), metav1.ConditionFalse, slinkyv1beta1.ReasonSlurmctldDown, "no",
		},
		"refuses the token": {
			failed(slurm.Unauthorized), metav1.ConditionFalse, slinkyv1beta1.ReasonAuthenticationFailed,
			"spec.jwtKeyRef",
		},
		"is too old": {
			failed(slurm.Unsupported), metav1.ConditionFalse, slinkyv1beta1.ReasonUnsupportedVersion, "24.11 or later",
		},
		"has another certificate": {
			slurm.Status{Err: &slurm.Error{
				Kind: slurm.Unreachable, Op: "ping", Err: &tls.CertificateVerificationError{Err: errors.New("no")},
			}}, metav1.ConditionFalse, slinkyv1beta1.ReasonEndpointNotVerified, "sends no token",
		},
		"answers in plain": {
			slurm.Status{Err: &slurm.Error{Kind: slurm.Unreachable, Op: "ping", Err: http.ErrSchemeMismatch}},
			metav1.ConditionFalse, slinkyv1beta1.ReasonRestAPIUnreachable, "waits until pods with TLS",
		},
		"is unreachable": {
			failed(slurm.Unreachable), metav1.ConditionFalse, slinkyv1beta1.ReasonRestAPIUnreachable, "no",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if is, reason, message := answer(test.state); is != test.is || reason != test.reason ||
				!strings.Contains(message, test.says) {
				t.Errorf("got %s, %s: %s", is, reason, message)
			}
		})
	}
}

func TestConditionIsKeptOnlyUntilFirstAnswer(t *testing.T) {
	used := restAPI("a", 0)
	connecting := func(is metav1.ConditionStatus) *scope {
		controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slurm", UID: "slurm"}}
		controller.Status.Conditions = []metav1.Condition{
			{Type: slinkyv1beta1.ConditionSlurmReachable, Status: is, Reason: "Before"},
		}
		return &scope{
			controller: controller, restAPI: used, service: service("a-restapi", "10.96.0.7", used), jwtKey: []byte("key"),
			certificate: certificateOf(t, used), now: now, session: &slurm.Session{},
		}
	}
	up, down, none := connecting(metav1.ConditionTrue), connecting(metav1.ConditionFalse), connecting(metav1.ConditionTrue)
	none.session = nil // the Accounting with the key does not exist
	for name, test := range map[string]struct {
		scope  *scope
		is     metav1.ConditionStatus
		reason string
	}{
		"was reachable":     {up, metav1.ConditionTrue, "Before"},
		"was not reachable": {down, metav1.ConditionUnknown, slinkyv1beta1.ReasonConnecting},
		"has no session":    {none, metav1.ConditionFalse, slinkyv1beta1.ReasonConnecting},
	} {
		t.Run(name, func(t *testing.T) {
			if is, reason, message := reachable(test.scope); is != test.is || reason != test.reason {
				t.Errorf("got %s, %s: %s", is, reason, message)
			}
		})
	}
}

func TestUnreachableRestApiSaysWhyItIsNotReady(t *testing.T) {
	unready := restAPI("a", 0)
	unready.Status.Conditions = []metav1.Condition{
		{Type: slinkyv1beta1.ConditionReady, Status: metav1.ConditionFalse, Message: "1 of 2 pods is updated"},
	}
	ready := unready.DeepCopy()
	ready.Status.Conditions[0].Status = metav1.ConditionTrue
	for name, test := range map[string]struct {
		restAPI *slinkyv1beta1.RestApi
		want    string
	}{
		"no RestApi": {nil, ""}, "not reconciled yet": {restAPI("a", 0), ""}, "ready": {ready, ""},
		"being updated": {unready, "RestApi a is not ready: 1 of 2 pods is updated"},
	} {
		if got := notReady(test.restAPI); got != test.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestConnectionChangesAreLogged(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failed := func(kind slurm.Kind) slurm.Status {
		return slurm.Status{
			Err: &slurm.Error{Kind: kind, Op: "ping", Err: errors.New("no route")}, NextAttempt: now.Add(4 * time.Second),
		}
	}
	const up, down = slinkyv1beta1.ReasonConnected, slinkyv1beta1.ReasonSlurmctldDown
	connected := slurm.Status{Reachable: true, Info: slurm.Info{API: "v0.0.45"}}
	for name, test := range map[string]struct {
		last  string
		state slurm.Status
		want  []string
	}{
		"connected":    {"", connected, []string{"connected to Slurm", "v0.0.45"}},
		"still up":     {up, connected, nil},
		"not up yet":   {"", slurm.Status{}, nil},
		"never up":     {"", failed(slurm.Unreachable), []string{"cannot connect to Slurm", "no route", "4s"}},
		"refused":      {"", failed(slurm.Unauthorized), []string{"refuses the operator's token", "no route", "4s"}},
		"still down":   {slinkyv1beta1.ReasonRestAPIUnreachable, failed(slurm.Unreachable), nil},
		"replaced":     {up, slurm.Status{}, nil},
		"lost":         {up, failed(slurm.Unreachable), []string{"lost the", "no route"}},
		"differently":  {down, failed(slurm.Unreachable), []string{"cannot connect"}},
		"up once more": {down, connected, []string{"connected to Slurm"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, reason, _ := answer(test.state)
			what, values := connectionChange(test.last, reason, test.state, now)
			line := fmt.Sprint(what, values)
			if (what == "") != (test.want == nil) {
				t.Errorf("the log line is %q", line)
			}
			for _, part := range test.want {
				if !strings.Contains(line, part) {
					t.Errorf("%q does not contain %q", line, part)
				}
			}
		})
	}
}
