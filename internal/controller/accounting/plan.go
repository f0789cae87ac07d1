package accounting

import (
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/keys"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A plan is the result of a reconcile's decisions.
type plan struct {
	// keys are the Secrets to generate.
	keys []*corev1.Secret
	// remove is true if slurmdbd is external and must not run here.
	remove bool
	// children are the desired objects; nil to leave them unchanged.
	children *children
	// correction is what must change in the StatefulSet even if the children cannot be applied; nil for nothing.
	correction *correction
	// verdict is the reason if there are no children.
	verdict status.Verdict
}

// obstacle returns the plan if nothing can be done. Running daemons are left alone.
func obstacle(verdict status.Verdict) plan { return plan{verdict: verdict} }

// makesWay reports whether the workload of another operator is checked, and makes way if it may be taken over. It does
// not while nothing can take its place.
func (p *plan) makesWay(scope *scope) bool {
	return !p.remove && (p.children != nil || p.keys != nil || !scope.mayTakeOver)
}

// decide makes a plan.
func decide(scope *scope) plan {
	plan := decideChildren(scope)
	if !plan.remove {
		plan.correction = correct(scope)
	}
	return plan
}

// decideChildren plans what the spec asks for: missing keys are generated first, then slurmdbd is built.
func decideChildren(scope *scope) plan {
	spec := scope.accounting.Spec
	if spec.External {
		verdict := status.Ready("slurmdbd runs elsewhere, at %s", spec.ExternalConfig.Host)
		verdict.Reason = slinkyv1beta1.ReasonExternal
		return plan{remove: true, verdict: verdict}
	}
	if missing := generate(scope); len(missing) > 0 {
		return plan{
			keys: missing, verdict: status.Progressing(slinkyv1beta1.ReasonReconciling, "keys are being generated"),
		}
	}
	if missing := findMissing(scope); missing != "" {
		return obstacle(status.Degraded(slinkyv1beta1.ReasonReferenceNotFound, "%s", missing))
	}
	if err := checkTLS(scope); err != nil {
		return obstacle(status.Degraded(slinkyv1beta1.ReasonInvalidSpec, "%v", err))
	}
	configuration, err := configure(scope)
	if err != nil {
		return obstacle(status.Degraded(slinkyv1beta1.ReasonInvalidSpec,
			"slurmdbd.conf cannot be built (lines are those of spec.extraConf): %v", err))
	}
	children, err := build(scope, configuration)
	if err != nil {
		return obstacle(status.Degraded(slinkyv1beta1.ReasonInvalidSpec, "%v", err))
	}
	if problem := releaseProblem(scope, children.image); problem != nil {
		return obstacle(*problem)
	}
	return plan{children: &children}
}

// generate returns new keys for those that the spec does not reference and that do not exist. An auth/slurm key is
// generated only before the first daemon runs with one.
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

// findMissing describes the first referenced value that does not exist, with the field and the remedy.
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
	for _, source := range tlsSources(spec.StorageConfig.TLS) {
		if len(scope.tls[source.file]) == 0 {
			return source.missing()
		}
	}
	return ""
}

// value returns one value of a Secret, which may be nil.
func value(secret *corev1.Secret, key slinkyv1beta1.SecretKeyReference) []byte {
	if secret == nil {
		return nil
	}
	return secret.Data[key.Key]
}
