package review

import (
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// Kinds of objects that are looked up.
const (
	ControllerKind = "Controller"
	AccountingKind = "Accounting"
	SecretKind     = "Secret"
	ConfigMapKind  = "ConfigMap"
	ClaimKind      = "PersistentVolumeClaim"
)

// MistakenFor maps kinds to those that users confuse them with.
var MistakenFor = map[string]string{
	ControllerKind: AccountingKind, AccountingKind: ControllerKind, SecretKind: ConfigMapKind,
	ConfigMapKind: SecretKind,
}

// A Target is an object in the namespace of the reviewed object.
type Target struct{ Kind, Name string }

// A Reference is an object that a spec references.
type Reference struct {
	Target
	// Field is the referring field.
	Field string
	// Until describes the effect while the object does not exist; if it is empty, there is no warning.
	Until string
	// Generators are objects for which the operator generates the target, or that it uses instead.
	Generators []Target
}

// lookUp returns a reference to a target that need not exist.
func lookUp(kind, name string) Reference { return Reference{Target: Target{kind, name}} }

// named returns a reference to an object that a field names.
func named(field, kind, name, until string) Reference {
	return Reference{Target: Target{kind, name}, Field: field, Until: until}
}

// secretKey returns the references for a field that selects a key of a Secret, which may be generated for a Controller
// or an Accounting, or be found under another documented name.
func secretKey(field string, key *slinkyv1beta1.SecretKeyReference, until string) []Reference {
	if key == nil {
		return nil
	}
	secret := named(field+".name", SecretKind, key.Name, until)
	references := []Reference{}
	names := naming.SecretNames(naming.JWTNames(*key))
	for _, other := range names[1:] {
		references = append(references, lookUp(SecretKind, other))
		secret.Generators = append(secret.Generators, Target{SecretKind, other})
	}
	for _, generated := range []func(string) slinkyv1beta1.SecretKeyReference{
		naming.GeneratedSlurmKey, naming.GeneratedJWTKey,
	} {
		owner, found := "", false
		for _, name := range names {
			if owner, found = strings.CutSuffix(name, generated("").Name); found && owner != "" {
				break
			}
		}
		if !found || owner == "" {
			continue
		}
		for _, kind := range []string{ControllerKind, AccountingKind} {
			references = append(references, lookUp(kind, owner))
			secret.Generators = append(secret.Generators, Target{kind, owner})
		}
	}
	return append(references, secret)
}

// configMapKey returns the reference for a field that selects a key of a ConfigMap.
func configMapKey(field string, key *slinkyv1beta1.ConfigMapKeyReference, until string) []Reference {
	if key == nil {
		return nil
	}
	return []Reference{named(field+".name", ConfigMapKind, key.Name, until)}
}

// check warns about a reference to a missing object.
func (r Reference) check(found Found) []Finding {
	result, known := found.Objects[r.Target]
	if !known || result.Object != nil || r.Until == "" {
		return nil
	}
	for _, generator := range r.Generators {
		if found.Objects[generator].Object != nil {
			return nil
		}
	}
	switch {
	case result.Kind != "":
		return []Finding{find(r.Field, r.Name,
			"there is no such %s, only an object of kind %s; until there is, %s; create it, or correct the name",
			r.Kind, result.Kind, r.Until)}
	case result.InOtherNamespace:
		return []Finding{find(r.Field, r.Name,
			"there is no such %s here, only in another namespace, and nothing refers across namespaces; until there "+
				"is, %s; create it here, or move this object",
			r.Kind, r.Until)}
	}
	return []Finding{
		find(r.Field, r.Name, "there is no such %s yet; until there is, %s; create it, or correct the name", r.Kind,
			r.Until),
	}
}
