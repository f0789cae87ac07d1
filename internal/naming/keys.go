package naming

import slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"

// Keys are references to the keys of a cluster.
type Keys struct {
	Slurm, JWT slinkyv1beta1.SecretKeyReference
}

// AccountingKeys returns the keys of an Accounting: those that its spec references, otherwise those generated for it.
func AccountingKeys(accounting *slinkyv1beta1.Accounting) Keys {
	return Keys{
		Slurm: chosen(accounting.Spec.SlurmKeyRef, GeneratedSlurmKey(accounting.Name)),
		JWT:   chosen(accounting.Spec.JWTKey(), GeneratedJWTKey(accounting.Name)),
	}
}

// ControllerKeys returns the keys of a Controller: those that its spec references, otherwise those of its Accounting,
// which may be nil, otherwise those generated for it.
func ControllerKeys(controller *slinkyv1beta1.Controller, accounting *slinkyv1beta1.Accounting) Keys {
	inherited := Keys{Slurm: GeneratedSlurmKey(controller.Name), JWT: GeneratedJWTKey(controller.Name)}
	if accounting != nil {
		inherited = AccountingKeys(accounting)
	}
	return Keys{
		Slurm: chosen(controller.Spec.SlurmKeyRef, inherited.Slurm),
		JWT:   chosen(controller.Spec.JWTKey(), inherited.JWT),
	}
}

// GeneratedSlurmKey returns the auth/slurm key that is generated for a Controller or an Accounting.
func GeneratedSlurmKey(owner string) slinkyv1beta1.SecretKeyReference {
	return slinkyv1beta1.SecretKeyReference{Name: owner + "-auth-slurm", Key: slinkyv1beta1.SlurmKeyFile}
}

// GeneratedJWTKey returns the HS256 key that is generated for a Controller or an Accounting.
func GeneratedJWTKey(owner string) slinkyv1beta1.SecretKeyReference {
	return slinkyv1beta1.SecretKeyReference{Name: owner + "-auth-jwt", Key: slinkyv1beta1.JWTKeyFile}
}

func chosen(given *slinkyv1beta1.SecretKeyReference,
	otherwise slinkyv1beta1.SecretKeyReference) slinkyv1beta1.SecretKeyReference {
	if given != nil {
		return *given
	}
	return otherwise
}
