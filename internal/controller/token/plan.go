package token

import (
	"time"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/jwt"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/status"
	"github.com/slurm-operator/slurm-operator/internal/tokenpolicy"
)

// A plan is the result of a reconcile's decisions.
type plan struct {
	// token is the desired content of the Secret; nil if there can be none.
	token *jwt.Token
	// replace is true if the Secret must be re-created.
	replace bool
	// forbidden is true if a policy forbids the Token: it must have no Secret.
	forbidden bool
	verdict   status.Verdict
	// requeueAfter is when the next renewal or expiry is due.
	requeueAfter time.Duration
}

// decide keeps the existing token while it is valid, and signs a new one otherwise. A policy comes first.
func decide(scope *scope) plan {
	for _, controller := range scope.governing {
		if refusal := tokenpolicy.Check(controller, scope.token); refusal != nil {
			return plan{forbidden: true, verdict: status.Degraded(slinkyv1beta1.ReasonForbiddenByPolicy, "%v", refusal)}
		}
	}
	if scope.key == nil {
		key := scope.token.Spec.JWTKey()
		return plan{verdict: status.Degraded(slinkyv1beta1.ReasonReferenceNotFound, "%s",
			reference.Missing("spec.jwtKeyRef", "Secret", key.Name, key.Key))}
	}
	spec := scope.token.Spec
	refresh := spec.Refresh == nil || *spec.Refresh
	kept, err := jwt.Parse(scope.key, scope.kept)
	matches := err == nil && kept.User == spec.Username &&
		kept.Expires.Sub(kept.Issued) == spec.Lifetime.Truncate(time.Second)
	switch {
	case matches && !refresh && !scope.now.Before(kept.Expires):
		return plan{token: &kept, verdict: status.Degraded(slinkyv1beta1.ReasonExpired,
			"the token expired at %s and is not renewed, because spec.refresh is false; set it to true, or create "+
				"another Token", kept.Expires.UTC().Format(time.RFC3339))}
	case matches && (!refresh || scope.now.Before(renewal(kept))):
		return plan{
			token: &kept, replace: refresh && scope.immutable, verdict: issued(kept),
			requeueAfter: untilDue(kept, refresh, scope.now),
		}
	}
	signed, err := jwt.Sign(scope.key, spec.Username, scope.now, spec.Lifetime.Duration)
	if err != nil {
		return plan{
			verdict: status.Degraded(slinkyv1beta1.ReasonInvalidSpec, "the key in spec.jwtKeyRef cannot sign: %v", err),
		}
	}
	return plan{
		token: &signed, replace: scope.immutable || !refresh && scope.kept != "", verdict: issued(signed),
		requeueAfter: untilDue(signed, refresh, scope.now),
	}
}

// renewal returns when a token is renewed: after two thirds of its lifetime, so that a client that read it just before
// still has a third.
func renewal(token jwt.Token) time.Time {
	return token.Issued.Add(token.Expires.Sub(token.Issued) / 3 * 2) // in this order, a long lifetime does not overflow
}

// untilDue returns the time until the renewal or the expiry of a token.
func untilDue(token jwt.Token, refresh bool, now time.Time) time.Duration {
	if refresh {
		return max(renewal(token).Sub(now), time.Second)
	}
	return max(token.Expires.Sub(now), time.Second)
}

// issued returns the verdict for a valid token. It does not contain the expiry, which is in the status, so that the
// condition does not change with every renewal.
func issued(token jwt.Token) status.Verdict {
	verdict := status.Ready("the Secret holds a valid token for the user %s", token.User)
	verdict.Reason = slinkyv1beta1.ReasonIssued
	return verdict
}

// conflict returns the plan if the Secret exists and the Token does not own it.
func conflict(foreign *child.ForeignError) plan {
	return plan{
		verdict:      status.Degraded(slinkyv1beta1.ReasonSecretConflict, "%v in spec.secretRef", foreign),
		requeueAfter: child.RetryRefusal,
	}
}
