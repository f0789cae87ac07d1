package cluster

import (
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmuser"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
)

func TestSlurmctldRunsAsTheUserOfItsImage(t *testing.T) {
	other := slinkyv1beta1.SlurmUser{UID: 401, GID: 402}
	hash := hashOf(t, newScope())
	found := func(outcome validation.Outcome) func(*scope) {
		return validateWith(hash, &validation.Report{Outcome: outcome, SlurmUser: &slurmuser.User{UID: 401, GID: 402}})
	}
	asOther := func(s *scope) {
		s.validation.Spec.SecurityContext = podSecurity(other)
		s.validation.Annotations[annotationRun], _ = validationDigest(s)
	}
	record := func(user slinkyv1beta1.SlurmUser) func(*scope) {
		return func(s *scope) { s.controller.Status.SlurmUser = &user }
	}
	give := func(user slinkyv1beta1.SlurmUser) func(*scope) {
		return func(s *scope) { s.controller.Spec.SlurmUser = user }
	}
	type changes = []func(*scope)
	for name, test := range map[string]struct {
		changes
		user, reported slinkyv1beta1.SlurmUser
		stage          stage
	}{
		"is not known at first": {user: clusterconf.DefaultUser, stage: begin},
		"is found by a first run": {
			changes: changes{found(validation.Refused)}, user: other, reported: other, stage: begin,
		},
		"is that of the next run": {
			changes: changes{validateWith(hash, nil), record(other), asOther}, user: other, reported: other, stage: validating,
		},
		"is accepted": {
			changes: changes{found(validation.Accepted), record(other), asOther}, user: other, reported: other, stage: promote,
		},
		"is found again before the cluster runs": {
			changes: changes{found(validation.Refused), record(clusterconf.DefaultUser)},
			user:    other, reported: other, stage: begin,
		},
		"stays the same with another image": {
			changes: changes{promoteWith("good", "old"), found(validation.Refused)},
			user:    clusterconf.DefaultUser, reported: clusterconf.DefaultUser, stage: refused,
		},
		"stays as it was found": {
			changes: changes{promotedAsBuilt(t), record(other)}, user: other, reported: other, stage: settled,
		},
		"is that of the configuration if the status is lost": {
			changes: changes{promotedAsBuilt(t), func(s *scope) { s.promoted.user = &other }},
			user:    other, reported: other, stage: settled,
		},
		"may be given": {
			changes: changes{give(slinkyv1beta1.SlurmUser{UID: 64030}), found(validation.Refused)},
			user:    clusterconf.DefaultUser, reported: clusterconf.DefaultUser, stage: refused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(test.changes...)
			if got := scope.slurmUser(); got != test.user {
				t.Errorf("user %+v, want %+v", got, test.user)
			}
			var reported slinkyv1beta1.SlurmUser
			if user := scope.reportedUser(); user != nil {
				reported = *user
			}
			if reported != test.reported {
				t.Errorf("reported %+v, want %+v", reported, test.reported)
			}
			if got := decide(scope).stage; got != test.stage {
				t.Errorf("stage %v, want %v", got, test.stage)
			}
		})
	}
}
