package loginset

import (
	"errors"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/sshd"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// obstacle returns why nothing can be created yet, and false if nothing prevents it. Existing objects are left
// unchanged.
func obstacle(scope *scope) (status.Verdict, bool) {
	spec := scope.set.Spec
	if scope.controller == nil {
		return status.Degraded(slinkyv1beta1.ReasonControllerNotFound,
			"Controller %s, which spec.controllerRef names, does not exist; create it", spec.ControllerRef.Name), true
	}
	if ref := scope.controller.Spec.AccountingRef; ref != nil && scope.accounting == nil &&
		scope.controller.Spec.SlurmKeyRef == nil {
		return status.Progressing(slinkyv1beta1.ReasonControllerNotReady,
			"waiting for Accounting %s, whose key Controller %s uses", ref.Name, scope.controller.Name), true
	}
	if scope.slurmKey == nil {
		key := scope.slurmKeyRef()
		return status.Progressing(slinkyv1beta1.ReasonControllerNotReady,
			"waiting for the key of Controller %s: Secret %s, key %s", scope.controller.Name, key.Name, key.Key), true
	}
	if _, known := clusterconf.User(scope.controller); !known {
		return status.Progressing(slinkyv1beta1.ReasonControllerNotReady,
			"waiting until Controller %s has found the user slurm in the image of slurmctld", scope.controller.Name), true
	}
	if ref := spec.SSSDConfRef; ref != nil && scope.sssdConf == nil {
		return status.Degraded(slinkyv1beta1.ReasonReferenceNotFound, "%s",
			reference.Missing("spec.sssdConfRef", "Secret", ref.Name, ref.Key)), true
	}
	if scope.hostKeys != nil && len(sshd.PrivateKeys(scope.hostKeys)) == 0 {
		return status.Degraded(slinkyv1beta1.ReasonInvalidSpec,
			"Secret %s holds no host key under a name such as ssh_host_ed25519_key; add one, or delete the Secret "+
				"and new ones are generated",
			naming.LoginHostKeys(scope.set.Name)), true
	}
	return status.Verdict{}, false
}

// invalid is an error that only a change of the spec can fix.
type invalid struct{ error }

// Unwrap returns the error itself.
func (e *invalid) Unwrap() error { return e.error }

// refusal returns the verdict for an error that the user must fix, and false for errors that a retry may fix.
func refusal(err error) (status.Verdict, bool) {
	if invalid, ok := errors.AsType[*invalid](err); ok {
		return status.Degraded(slinkyv1beta1.ReasonInvalidSpec, "%v", invalid), true
	}
	return child.Refusal(err)
}
