package accounting

import (
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/keys"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A plan is what to do about an Accounting.
type plan struct {
	// keys are to be generated.
	keys []*corev1.Secret
	// remove says that nothing is to run here.
	remove bool
	// children are what is to exist; nil when they stay as they are.
	children *children
	// verdict says why there are no children.
	verdict status.Verdict
}

// obstacle is the plan when nothing can be done. What runs goes on running.
func obstacle(verdict status.Verdict) plan { return plan{verdict: verdict} }

// decide generates missing keys first, then makes slurmdbd from everything that the spec refers to.
func decide(scope *scope) plan {
	spec := scope.accounting.Spec
	if spec.External {
		verdict := status.Well("slurmdbd runs elsewhere, at %s", spec.ExternalConfig.Host)
		verdict.Reason = slinkyv1beta1.ReasonExternal
		return plan{remove: true, verdict: verdict}
	}
	if missing := generate(scope); len(missing) > 0 {
		return plan{keys: missing, verdict: status.Working(slinkyv1beta1.ReasonReconciling, "keys are being generated")}
	}
	if missing := findMissing(scope); missing != "" {
		return obstacle(status.Broken(slinkyv1beta1.ReasonReferenceNotFound, "%s", missing))
	}
	configuration, err := configure(scope)
	if err != nil {
		return obstacle(status.Broken(slinkyv1beta1.ReasonInvalidSpec, "slurmdbd.conf cannot be made (lines are those of spec.extraConf): %v", err))
	}
	children, err := build(scope, configuration)
	if err != nil {
		return obstacle(status.Broken(slinkyv1beta1.ReasonInvalidSpec, "%v", err))
	}
	return plan{children: &children}
}

// generate are the keys that the spec does not name and that do not exist. A key of auth/slurm is only made before anything runs
// with one.
func generate(scope *scope) []*corev1.Secret {
	var missing []*corev1.Secret
	accounting := scope.accounting
	if accounting.Spec.SlurmKeyRef == nil && scope.slurmKey == nil && scope.statefulSet == nil {
		missing = append(missing, keys.Slurm(accounting.Namespace, scope.keys.Slurm))
	}
	if accounting.Spec.JWTKey() == nil && scope.jwtKey == nil {
		missing = append(missing, keys.JWT(accounting.Namespace, scope.keys.JWT))
	}
	return missing
}

// findMissing says which value does not exist that the spec refers to, with the field and the remedy.
func findMissing(scope *scope) string {
	spec := scope.accounting.Spec
	switch password := spec.StorageConfig.PasswordKeyRef; {
	case spec.SlurmKeyRef == nil && scope.slurmKey == nil:
		return keys.Lost(scope.keys.Slurm)
	case len(value(scope.slurmKey, scope.keys.Slurm)) == 0:
		return reference.Missing("spec.slurmKeyRef", "Secret", scope.keys.Slurm.Name, scope.keys.Slurm.Key)
	case len(value(scope.jwtKey, scope.keys.JWT)) == 0:
		return reference.Missing("spec.jwtKeyRef", "Secret", scope.keys.JWT.Name, scope.keys.JWT.Key)
	case scope.password == "":
		return reference.Missing("spec.storageConfig.passwordKeyRef", "Secret", password.Name, password.Key)
	case spec.JWKSKeyRef != nil && scope.jwks == "":
		return reference.Missing("spec.jwksKeyRef", "ConfigMap", spec.JWKSKeyRef.Name, spec.JWKSKeyRef.Key)
	}
	return ""
}

// value is one value of a Secret, which may be nil.
func value(secret *corev1.Secret, key slinkyv1beta1.SecretKeyReference) []byte {
	if secret == nil {
		return nil
	}
	return secret.Data[key.Key]
}
