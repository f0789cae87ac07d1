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
		key     []byte
		kept    string
		refresh *bool
		reason  string
		ready   bool
		signs   bool
		replace bool
		again   time.Duration
	}{
		"asks for the key":                  {reason: slinkyv1beta1.ReasonReferenceNotFound},
		"refuses a key that can be guessed": {key: []byte("short"), reason: slinkyv1beta1.ReasonInvalidSpec},
		"signs the first token":             {key: key, ready: true, signs: true, again: 40 * time.Minute, reason: slinkyv1beta1.ReasonIssued},
		"keeps a young token": {
			key: key, kept: sign(key, "alice", 10*time.Minute, time.Hour), ready: true, again: 30 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
		"renews a token when two thirds of its life have passed": {
			key: key, kept: sign(key, "alice", 40*time.Minute, time.Hour), ready: true, signs: true, again: 40 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
		"signs anew when the key was rotated": {
			key: otherKey, kept: sign(key, "alice", 0, time.Hour), ready: true, signs: true, again: 40 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
		"signs anew when the user has changed": {
			key: key, kept: sign(key, "bob", 0, time.Hour), ready: true, signs: true, again: 40 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
		"signs anew when the lifetime has changed": {
			key: key, kept: sign(key, "alice", 0, time.Minute), ready: true, signs: true, again: 40 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
		"signs anew when the Secret was tampered with": {
			key: key, kept: "garbage", ready: true, signs: true, again: 40 * time.Minute, reason: slinkyv1beta1.ReasonIssued,
		},
		"keeps an old token that is not to be renewed": {
			key: key, kept: sign(key, "alice", 50*time.Minute, time.Hour), refresh: new(false), ready: true, again: 10 * time.Minute,
			reason: slinkyv1beta1.ReasonIssued,
		},
		"says that a token has expired that is not to be renewed": {
			key: key, kept: sign(key, "alice", time.Hour, time.Hour), refresh: new(false), reason: slinkyv1beta1.ReasonExpired,
		},
		"makes the immutable Secret anew for a rotated key": {
			key: otherKey, kept: sign(key, "alice", 0, time.Hour), refresh: new(false), ready: true, signs: true, replace: true, again: time.Hour,
			reason: slinkyv1beta1.ReasonIssued,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			token := &slinkyv1beta1.Token{Spec: slinkyv1beta1.TokenSpec{
				Username: "alice", Lifetime: metav1.Duration{Duration: time.Hour}, Refresh: test.refresh,
				JWTKeyRef: &slinkyv1beta1.SecretKeyReference{Name: "key", Key: "k"},
			}}
			plan := decide(&scope{token: token, key: test.key, kept: test.kept, now: now})
			if plan.verdict.Reason != test.reason || plan.verdict.Ready() != test.ready {
				t.Errorf("verdict is %+v", plan.verdict)
			}
			if signs := plan.token != nil && plan.token.Text != test.kept; signs != test.signs {
				t.Errorf("signs: %v", signs)
			}
			if plan.replace != test.replace || plan.again != test.again {
				t.Errorf("replaces %v, looks again after %v", plan.replace, plan.again)
			}
		})
	}
}
