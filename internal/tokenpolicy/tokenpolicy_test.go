package tokenpolicy_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/tokenpolicy"
)

type users = []slinkyv1beta1.PolicyUser

func TestPolicyDecides(t *testing.T) {
	hour := &metav1.Duration{Duration: time.Hour}
	tests := map[string]struct {
		policy   *slinkyv1beta1.TokenPolicy
		user     string
		lifetime time.Duration
		want     string // empty if the Token is allowed
	}{
		"without a policy, root is allowed for years": {user: "root", lifetime: 50_000 * time.Hour},
		"an empty policy allows everything": {
			policy: &slinkyv1beta1.TokenPolicy{}, user: "0", lifetime: 50_000 * time.Hour,
		},
		"a lifetime up to the maximum is allowed": {
			policy: &slinkyv1beta1.TokenPolicy{MaxLifetime: hour}, user: "root", lifetime: time.Hour,
		},
		"a longer lifetime is forbidden": {
			policy: &slinkyv1beta1.TokenPolicy{MaxLifetime: hour}, user: "alice", lifetime: time.Hour + time.Second,
			want: "spec.lifetime: 1h0m1s is more than spec.tokenPolicy.maxLifetime of Controller slurm allows; use 1h or " +
				"less, or change the policy",
		},
		"an allowed user": {policy: &slinkyv1beta1.TokenPolicy{AllowedUsers: users{"alice", "1000"}}, user: "alice"},
		"a user who is not allowed": {
			policy: &slinkyv1beta1.TokenPolicy{AllowedUsers: users{"alice"}}, user: "root",
			want: `spec.username: spec.tokenPolicy.allowedUsers of Controller slurm does not contain "root"; use another ` +
				"user, or add it there",
		},
		"another case of an allowed user is another user": {
			policy: &slinkyv1beta1.TokenPolicy{AllowedUsers: users{"alice"}}, user: "Alice",
			want: `spec.username: spec.tokenPolicy.allowedUsers of Controller slurm does not contain "Alice"; use another ` +
				"user, or add it there",
		},
		"a denied user": {
			policy: &slinkyv1beta1.TokenPolicy{DeniedUsers: users{"root", "slurm"}}, user: "root",
			want: `spec.username: spec.tokenPolicy.deniedUsers of Controller slurm contains "root"; use another user, or ` +
				"change the policy",
		},
		"another case of a denied user": {
			policy: &slinkyv1beta1.TokenPolicy{DeniedUsers: users{"root"}}, user: "Root",
			want: `spec.username: spec.tokenPolicy.deniedUsers of Controller slurm contains "Root"; use another user, or ` +
				"change the policy",
		},
		"a user who is not denied": {
			policy: &slinkyv1beta1.TokenPolicy{DeniedUsers: users{"root"}}, user: "1alice",
		},
		"a denied user who is also allowed": {
			policy: &slinkyv1beta1.TokenPolicy{AllowedUsers: users{"root"}, DeniedUsers: users{"root"}}, user: "root",
			want: `spec.username: spec.tokenPolicy.deniedUsers of Controller slurm contains "root"; use another user, or ` +
				"change the policy",
		},
		"the UID of a denied user": {
			policy: &slinkyv1beta1.TokenPolicy{DeniedUsers: users{"root"}}, user: "0", want: notAName(`"0"`),
		},
		"the UID of a denied user with a sign": {
			policy: &slinkyv1beta1.TokenPolicy{DeniedUsers: users{"root"}}, user: "+00", want: notAName(`"+00"`),
		},
		"the UID of a denied user after a form feed": {
			policy: &slinkyv1beta1.TokenPolicy{DeniedUsers: users{"root"}}, user: "\f0", want: notAName(`"\f0"`),
		},
		"a denied user before a null": {
			policy: &slinkyv1beta1.TokenPolicy{DeniedUsers: users{"root"}}, user: "root\x00", want: notAName(`"root\x00"`),
		},
		"an allowed number": {
			policy: &slinkyv1beta1.TokenPolicy{AllowedUsers: users{"1000"}, DeniedUsers: users{"root"}}, user: "1000",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			controller := &slinkyv1beta1.Controller{
				ObjectMeta: metav1.ObjectMeta{Name: "slurm"}, Spec: slinkyv1beta1.ControllerSpec{TokenPolicy: test.policy},
			}
			token := &slinkyv1beta1.Token{Spec: slinkyv1beta1.TokenSpec{
				Username: test.user, Lifetime: metav1.Duration{Duration: test.lifetime},
			}}
			got := ""
			if refusal := tokenpolicy.Check(controller, token); refusal != nil {
				got = refusal.Error()
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func notAName(user string) string {
	return "spec.username: " + user + " is not a login name, and could be a user of spec.tokenPolicy.deniedUsers of " +
		"Controller slurm; use the name of the user, or add it to allowedUsers"
}

func TestPolicyGovernsTokensWithTheKeyOfItsCluster(t *testing.T) {
	key := func(name, key string) *slinkyv1beta1.SecretKeyReference {
		return &slinkyv1beta1.SecretKeyReference{Name: name, Key: key}
	}
	accounting := &slinkyv1beta1.Accounting{ObjectMeta: metav1.ObjectMeta{Name: "books"}}
	tests := map[string]struct {
		controller slinkyv1beta1.ControllerSpec
		accounting *slinkyv1beta1.Accounting
		token      slinkyv1beta1.TokenSpec
		want       bool
	}{
		"the generated key": {
			token: slinkyv1beta1.TokenSpec{JWTKeyRef: key("slurm-auth-jwths256", "jwt_hs256.key")}, want: true,
		},
		"the generated key under a former name": {
			token: slinkyv1beta1.TokenSpec{JWTHS256KeyRef: key("slurm-auth-jwt", "jwt.key")}, want: true,
		},
		"the key of the spec": {
			controller: slinkyv1beta1.ControllerSpec{JWTKeyRef: key("mine", "k")},
			token:      slinkyv1beta1.TokenSpec{JWTKeyRef: key("mine", "k")}, want: true,
		},
		"another value of the Secret": {
			controller: slinkyv1beta1.ControllerSpec{JWTKeyRef: key("mine", "k")},
			token:      slinkyv1beta1.TokenSpec{JWTKeyRef: key("mine", "other")},
		},
		"the key of the Accounting": {
			accounting: accounting, want: true,
			token: slinkyv1beta1.TokenSpec{JWTKeyRef: key("books-auth-jwt", "jwt_hs256.key")},
		},
		"the key of another cluster": {token: slinkyv1beta1.TokenSpec{JWTKeyRef: key("other-auth-jwt", "jwt_hs256.key")}},
		"no key":                     {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}, Spec: test.controller}
			token := &slinkyv1beta1.Token{Spec: test.token}
			if got := tokenpolicy.Governs(controller, test.accounting, token); got != test.want {
				t.Errorf("governs: %t, want %t", got, test.want)
			}
		})
	}
}
