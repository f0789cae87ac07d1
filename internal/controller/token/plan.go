package token

import (
	"time"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/jwt"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A plan is what to do about a Token.
type plan struct {
	// token is what the Secret is to hold; nil when there can be none.
	token *jwt.Token
	// replace says that the Secret must be made anew.
	replace bool
	verdict status.Verdict
	// again is when to look again, at the latest.
	again time.Duration
}

// decide keeps the token that there is while it is good, and signs another otherwise.
func decide(scope *scope) plan {
	if scope.key == nil {
		key := scope.token.Spec.JWTKey()
		return plan{verdict: status.Broken(slinkyv1beta1.ReasonReferenceNotFound, "%s",
			reference.Missing("spec.jwtKeyRef", "Secret", key.Name, key.Key))}
	}
	spec := scope.token.Spec
	refresh := spec.Refresh == nil || *spec.Refresh
	kept, err := jwt.Parse(scope.key, scope.kept)
	ours := err == nil && kept.User == spec.Username && kept.Expires.Sub(kept.Issued) == spec.Lifetime.Truncate(time.Second)
	switch {
	case ours && !refresh && !scope.now.Before(kept.Expires):
		return plan{token: &kept, verdict: status.Broken(slinkyv1beta1.ReasonExpired,
			"the token expired at %s and is not renewed, because spec.refresh is false; set it to true, or create another Token", kept.Expires.UTC().Format(time.RFC3339))}
	case ours && (!refresh || scope.now.Before(renewal(kept))):
		return plan{token: &kept, verdict: issued(kept), again: wake(kept, refresh, scope.now)}
	}
	signed, err := jwt.Sign(scope.key, spec.Username, scope.now, spec.Lifetime.Duration)
	if err != nil {
		return plan{verdict: status.Broken(slinkyv1beta1.ReasonInvalidSpec, "the key in spec.jwtKeyRef cannot sign: %v", err)}
	}
	return plan{token: &signed, replace: !refresh && scope.kept != "", verdict: issued(signed), again: wake(signed, refresh, scope.now)}
}

// renewal is when a token is renewed: when two thirds of its life have passed, so that whoever took it from the Secret
// just before still has a third.
func renewal(token jwt.Token) time.Time {
	return token.Issued.Add(token.Expires.Sub(token.Issued) * 2 / 3)
}

// wake is how long there is nothing to do.
func wake(token jwt.Token, refresh bool, now time.Time) time.Duration {
	if refresh {
		return max(renewal(token).Sub(now), time.Second)
	}
	return max(token.Expires.Sub(now), time.Second)
}

// issued does not name the time of expiry: the status has it, and the condition is to change only when something has.
func issued(token jwt.Token) status.Verdict {
	verdict := status.Well("the Secret holds a valid token for the user %s", token.User)
	verdict.Reason = slinkyv1beta1.ReasonIssued
	return verdict
}

// conflict says that the Secret belongs to somebody else.
func conflict(foreign *child.ForeignError) plan {
	return plan{verdict: status.Broken(slinkyv1beta1.ReasonSecretConflict, "%v in spec.secretRef", foreign), again: child.RetryRefusal}
}
