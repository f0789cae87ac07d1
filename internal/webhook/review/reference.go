package review

import (
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// The kinds of objects that are looked up.
const (
	ControllerKind = "Controller"
	AccountingKind = "Accounting"
	SecretKind     = "Secret"
	ConfigMapKind  = "ConfigMap"
	ClaimKind      = "PersistentVolumeClaim"
)

// MistakenFor are the kinds that people name by mistake in place of another.
var MistakenFor = map[string]string{
	ControllerKind: AccountingKind, AccountingKind: ControllerKind, SecretKind: ConfigMapKind, ConfigMapKind: SecretKind,
}

// A Target is an object in the namespace of the one that is reviewed.
type Target struct{ Kind, Name string }

// A Reference is an object that a spec names.
type Reference struct {
	Target
	// Field is where it is named.
	Field string
	// Until says what happens as long as it does not exist; nothing is said about it when this is empty.
	Until string
	// Makers are objects of which each would make the target soon.
	Makers []Target
}

// lookUp is a target about which there is something to know, whether or not it exists.
func lookUp(kind, name string) Reference { return Reference{Target: Target{kind, name}} }

// named is an object that a field names.
func named(field, kind, name, until string) Reference {
	return Reference{Target: Target{kind, name}, Field: field, Until: until}
}

// secretKey is a Secret with a value that a field selects. That one may be generated for a Controller or an Accounting.
func secretKey(field string, key *slinkyv1beta1.SecretKeyReference, until string) []Reference {
	if key == nil {
		return nil
	}
	secret := named(field+".name", SecretKind, key.Name, until)
	references := []Reference{}
	for _, generated := range []func(string) slinkyv1beta1.SecretKeyReference{naming.GeneratedSlurmKey, naming.GeneratedJWTKey} {
		owner, found := strings.CutSuffix(key.Name, generated("").Name)
		if !found || owner == "" {
			continue
		}
		for _, kind := range []string{ControllerKind, AccountingKind} {
			references = append(references, lookUp(kind, owner))
			secret.Makers = append(secret.Makers, Target{kind, owner})
		}
	}
	return append(references, secret)
}

// configMapKey is a ConfigMap with a value that a field selects.
func configMapKey(field string, key *slinkyv1beta1.ConfigMapKeyReference, until string) []Reference {
	if key == nil {
		return nil
	}
	return []Reference{named(field+".name", ConfigMapKind, key.Name, until)}
}

// check warns about a reference to nothing.
func (r Reference) check(found Found) []Finding {
	result, known := found.Objects[r.Target]
	if !known || result.Object != nil || r.Until == "" {
		return nil
	}
	for _, maker := range r.Makers {
		if found.Objects[maker].Object != nil {
			return nil
		}
	}
	switch {
	case result.Kind != "":
		return []Finding{find(r.Field, r.Name, "there is no such %s, only an object of kind %s; until there is, %s; create it, or correct the name",
			r.Kind, result.Kind, r.Until)}
	case result.Elsewhere:
		return []Finding{find(r.Field, r.Name, "there is no such %s here, only in another namespace, and nothing refers across namespaces; until there is, %s; create it here, or move this object",
			r.Kind, r.Until)}
	}
	return []Finding{find(r.Field, r.Name, "there is no such %s yet; until there is, %s; create it, or correct the name", r.Kind, r.Until)}
}
