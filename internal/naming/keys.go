package naming

import (
	"slices"
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// Keys are references to the keys of a cluster.
type Keys struct {
	Slurm, JWT slinkyv1beta1.SecretKeyReference
	// JWTNames are where the JWT key may be, in order of preference. If it is nowhere, it belongs at JWT.
	JWTNames []slinkyv1beta1.SecretKeyReference
}

// AccountingKeys returns the keys of an Accounting: those that its spec references, otherwise those generated for it.
func AccountingKeys(accounting *slinkyv1beta1.Accounting) Keys {
	return generatedKeys(accounting.Name).chosen(accounting.Spec.SlurmKeyRef, accounting.Spec.JWTKey())
}

// ControllerKeys returns the keys of a Controller: those that its spec references, otherwise those of its Accounting,
// which may be nil, otherwise those generated for it.
func ControllerKeys(controller *slinkyv1beta1.Controller, accounting *slinkyv1beta1.Accounting) Keys {
	inherited := generatedKeys(controller.Name)
	if accounting != nil {
		inherited = AccountingKeys(accounting)
	}
	return inherited.chosen(controller.Spec.SlurmKeyRef, controller.Spec.JWTKey())
}

func generatedKeys(owner string) Keys {
	return Keys{Slurm: GeneratedSlurmKey(owner), JWT: GeneratedJWTKey(owner), JWTNames: documentedJWTKeys(owner)}
}

// chosen returns the keys that a spec references, which may be nil, and otherwise these.
func (k Keys) chosen(slurm, jwt *slinkyv1beta1.SecretKeyReference) Keys {
	if slurm != nil {
		k.Slurm = *slurm
	}
	if jwt != nil {
		k.JWT, k.JWTNames = *jwt, JWTNames(*jwt)
	}
	return k
}

// GeneratedSlurmKey returns the auth/slurm key that is generated for a Controller or an Accounting.
func GeneratedSlurmKey(owner string) slinkyv1beta1.SecretKeyReference {
	return slinkyv1beta1.SecretKeyReference{Name: owner + "-auth-slurm", Key: slinkyv1beta1.SlurmKeyFile}
}

// GeneratedJWTKey returns the HS256 key that is generated for a Controller or an Accounting.
func GeneratedJWTKey(owner string) slinkyv1beta1.SecretKeyReference {
	return slinkyv1beta1.SecretKeyReference{Name: owner + "-auth-jwths256", Key: slinkyv1beta1.JWTKeyFile}
}

// documentedJWTKeys returns where versions of the API and of the operator keep the JWT key of a cluster. First is where
// earlier versions of the operator generated it: running clusters use that one.
func documentedJWTKeys(owner string) []slinkyv1beta1.SecretKeyReference {
	return []slinkyv1beta1.SecretKeyReference{
		{Name: owner + "-auth-jwt", Key: slinkyv1beta1.JWTKeyFile}, GeneratedJWTKey(owner),
		{Name: owner + "-auth-jwt", Key: "jwt.key"},
	}
}

// JWTNames returns where the JWT key of a reference may be: there, or, if that is one of the documented names, under
// the others.
func JWTNames(key slinkyv1beta1.SecretKeyReference) []slinkyv1beta1.SecretKeyReference {
	names := []slinkyv1beta1.SecretKeyReference{key}
	owner, _, _ := strings.Cut(key.Name, "-auth-jwt")
	if documented := documentedJWTKeys(owner); owner != "" && slices.Contains(documented, key) {
		names = append(names, slices.DeleteFunc(documented,
			func(other slinkyv1beta1.SecretKeyReference) bool { return other == key })...)
	}
	return names
}

// SecretNames returns the names of the Secrets of references, each once.
func SecretNames(keys []slinkyv1beta1.SecretKeyReference) []string {
	var names []string
	for _, key := range keys {
		if !slices.Contains(names, key.Name) {
			names = append(names, key.Name)
		}
	}
	return names
}
