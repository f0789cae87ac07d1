package token

import (
	"bytes"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/jwt"
)

func TestDecide(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	key, otherKey := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	sign := func(key []byte, user string, age, lifetime time.Duration) string {
		token, err := jwt.Sign(key, user, now.Add(-age), lifetime)
		if err != nil {
			t.Fatal(err)
		}
		return token.Text
	}
	tests := map[string]struct {
		key          []byte
		kept         string
		refresh      *bool
		reason       string
		ready        bool
		signs        bool
		immutable    bool
		replace      bool
		forbidden    bool
		policy       *slinkyv1beta1.TokenPolicy
		requeueAfter time.Duration
	}{
		"key is missing":      {reason: slinkyv1beta1.ReasonReferenceNotFound},
		"refuses a short key": {key: []byte("short"), reason: slinkyv1beta1.ReasonInvalidSpec},
		"signs the first token": {
			key: key, ready: true, signs: true, requeueAfter: 40 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
		"keeps a fresh token": {
			key: key, kept: sign(key, "alice", 10*time.Minute, time.Hour), ready: true, requeueAfter: 30 * time.Minute,
			reason: slinkyv1beta1.ReasonIssued,
		},
		"renews a token after two thirds of its lifetime": {
			key: key, kept: sign(key, "alice", 40*time.Minute, time.Hour), ready: true, signs: true,
			requeueAfter: 40 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
		"signs again when the key was rotated": {
			key: otherKey, kept: sign(key, "alice", 0, time.Hour), ready: true, signs: true,
			requeueAfter: 40 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
		"signs again when the user has changed": {
			key: key, kept: sign(key, "bob", 0, time.Hour), ready: true, signs: true, requeueAfter: 40 * time.Minute,
			reason: slinkyv1beta1.ReasonIssued,
		},
		"signs again when the lifetime has changed": {
			key: key, kept: sign(key, "alice", 0, time.Minute), ready: true, signs: true,
			requeueAfter: 40 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
		"signs again when the token is invalid": {
			key: key, kept: "garbage", ready: true, signs: true, requeueAfter: 40 * time.Minute,
			reason: slinkyv1beta1.ReasonIssued,
		},
		"keeps an old token that is not renewed": {
			key: key, kept: sign(key, "alice", 50*time.Minute, time.Hour), refresh: new(false), ready: true,
			requeueAfter: 10 * time.Minute,
			reason:       slinkyv1beta1.ReasonIssued,
		},
		"reports an expired token that is not renewed": {
			key: key, kept: sign(key, "alice", time.Hour, time.Hour), refresh: new(false),
			reason: slinkyv1beta1.ReasonExpired,
		},
		"signs a token that the policy allows": {
			key: key, policy: &slinkyv1beta1.TokenPolicy{AllowedUsers: []slinkyv1beta1.PolicyUser{"alice"}},
			ready: true, signs: true, requeueAfter: 40 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
		"signs nothing that the policy forbids": {
			key: key, policy: &slinkyv1beta1.TokenPolicy{DeniedUsers: []slinkyv1beta1.PolicyUser{"alice"}},
			forbidden: true, reason: slinkyv1beta1.ReasonForbiddenByPolicy,
		},
		"keeps no token that the policy forbids": {
			key: key, kept: sign(key, "alice", 0, time.Hour), forbidden: true,
			policy: &slinkyv1beta1.TokenPolicy{MaxLifetime: &metav1.Duration{Duration: 30 * time.Minute}},
			reason: slinkyv1beta1.ReasonForbiddenByPolicy,
		},
		"keeps no token that the policy forbids, even without the key": {
			kept: sign(key, "alice", 0, time.Hour), forbidden: true,
			policy: &slinkyv1beta1.TokenPolicy{DeniedUsers: []slinkyv1beta1.PolicyUser{"alice"}},
			reason: slinkyv1beta1.ReasonForbiddenByPolicy,
		},
		"re-creates the immutable Secret for a rotated key": {
			key: otherKey, kept: sign(key, "alice", 0, time.Hour), refresh: new(false), ready: true, signs: true,
			replace: true, requeueAfter: time.Hour,
			reason: slinkyv1beta1.ReasonIssued,
		},
		"re-creates the immutable Secret of a valid token when renewal is enabled": {
			key: key, kept: sign(key, "alice", 10*time.Minute, time.Hour), immutable: true, ready: true, replace: true,
			requeueAfter: 30 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
		"re-creates the immutable Secret of an expired token when renewal is enabled": {
			key: key, kept: sign(key, "alice", 2*time.Hour, time.Hour), immutable: true, ready: true, signs: true,
			replace: true, requeueAfter: 40 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
		"keeps the immutable Secret of a token that is not renewed": {
			key: key, kept: sign(key, "alice", 50*time.Minute, time.Hour), refresh: new(false), immutable: true, ready: true,
			requeueAfter: 10 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			token := &slinkyv1beta1.Token{Spec: slinkyv1beta1.TokenSpec{
				Username: "alice", Lifetime: metav1.Duration{Duration: time.Hour}, Refresh: test.refresh,
				JWTKeyRef: &slinkyv1beta1.SecretKeyReference{Name: "key", Key: "k"},
			}}
			governing := []*slinkyv1beta1.Controller{{}, {Spec: slinkyv1beta1.ControllerSpec{TokenPolicy: test.policy}}}
			plan := decide(&scope{
				token: token, key: test.key, kept: test.kept, immutable: test.immutable, now: now, governing: governing,
			})
			if plan.verdict.Reason != test.reason || plan.verdict.Ready() != test.ready {
				t.Errorf("got verdict %+v", plan.verdict)
			}
			if signs := plan.token != nil && plan.token.Text != test.kept; signs != test.signs {
				t.Errorf("signs: %v", signs)
			}
			if plan.forbidden != test.forbidden {
				t.Errorf("forbidden: %v", plan.forbidden)
			}
			if plan.replace != test.replace || plan.requeueAfter != test.requeueAfter {
				t.Errorf("replaces: %v, requeues after %v", plan.replace, plan.requeueAfter)
			}
		})
	}
}

// Twice a lifetime of more than 146 years is more than a duration can be.
func TestLongLifetimeIsNotRenewedAtOnce(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	token := &slinkyv1beta1.Token{}
	token.Spec.Username, token.Spec.Lifetime = "alice", metav1.Duration{Duration: 1_300_000 * time.Hour}
	key := bytes.Repeat([]byte{1}, 32)
	first := decide(&scope{token: token, key: key, now: now})
	second := decide(&scope{token: token, key: key, kept: first.token.Text, now: now.Add(time.Second)})
	if first.token.Text != second.token.Text || second.requeueAfter < 800_000*time.Hour {
		t.Errorf("renewed after %s, and signed again after a second: %t", second.requeueAfter,
			first.token.Text != second.token.Text)
	}
}
