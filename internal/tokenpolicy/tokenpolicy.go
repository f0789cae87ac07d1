// Package tokenpolicy decides whether the policy of a cluster allows a Token.
//
// A Token names a key and no Controller, so the policy of every Controller with that key applies: its token is valid
// for all of them. The token controller enforces the policies; the webhook only warns about the result.
package tokenpolicy

import (
	"slices"
	"strings"
	"time"
	"unicode"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/invalid"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// Governs reports whether a Controller's key and a Token's may be the same, by their names. The Accounting is that of
// the Controller, or nil.
func Governs(controller *slinkyv1beta1.Controller, accounting *slinkyv1beta1.Accounting,
	token *slinkyv1beta1.Token) bool {
	key := token.Spec.JWTKey()
	if key == nil {
		return false
	}
	names := naming.JWTNames(*key)
	return slices.ContainsFunc(naming.ControllerKeys(controller, accounting).JWTNames,
		func(name slinkyv1beta1.SecretKeyReference) bool { return slices.Contains(names, name) })
}

// Check returns which field of a Token the policy of a Controller forbids, and nil if it allows the Token.
func Check(controller *slinkyv1beta1.Controller, token *slinkyv1beta1.Token) *invalid.Field {
	policy := controller.Spec.TokenPolicy
	if policy == nil {
		return nil
	}
	if refusal := checkUser(controller.Name, policy, token.Spec.Username); refusal != nil {
		return refusal
	}
	if limit := policy.MaxLifetime; limit != nil && token.Spec.Lifetime.Duration > limit.Duration {
		return invalid.New("spec.lifetime",
			"%s is more than spec.tokenPolicy.maxLifetime of Controller %s allows; use %s or less, or change the policy",
			text(token.Spec.Lifetime.Duration), controller.Name, text(limit.Duration))
	}
	return nil
}

func checkUser(controller string, policy *slinkyv1beta1.TokenPolicy, user string) *invalid.Field {
	const field = "spec.username"
	denied := slices.ContainsFunc(policy.DeniedUsers,
		func(denied slinkyv1beta1.PolicyUser) bool { return strings.EqualFold(string(denied), user) })
	switch allowed := slices.Contains(policy.AllowedUsers, slinkyv1beta1.PolicyUser(user)); {
	case denied:
		return invalid.New(field,
			"spec.tokenPolicy.deniedUsers of Controller %s contains %q; use another user, or change the policy",
			controller, user)
	case allowed:
		return nil
	case len(policy.AllowedUsers) > 0:
		return invalid.New(field,
			"spec.tokenPolicy.allowedUsers of Controller %s does not contain %q; use another user, or add it there",
			controller, user)
	case len(policy.DeniedUsers) > 0 && !isName(user):
		return invalid.New(field,
			"%q is not a login name, and could be a user of spec.tokenPolicy.deniedUsers of Controller %s; use the name "+
				"of the user, or add it to allowedUsers", user, controller)
	}
	return nil
}

// isName reports whether Slurm can only read a user as a name. It reads a number as a UID, also with a sign and after
// white space.
func isName(user string) bool {
	if strings.ContainsFunc(user, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return false
	}
	return strings.ContainsFunc(strings.TrimLeft(user, "+-"), func(r rune) bool { return r < '0' || r > '9' })
}

// text returns a duration without trailing zero units: 1h instead of 1h0m0s.
func text(duration time.Duration) string {
	text := duration.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
