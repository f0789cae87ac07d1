package doctor

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// A ResourceType is a CRD, as far as it is needed to see whether it is of the same version as this program.
type ResourceType struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPIV3Schema schema `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

type schema struct {
	Properties map[string]schema `json:"properties,omitempty"`
}

// kinds are the types whose fields the CRDs must have, by the plural of the CRD.
var kinds = map[string]reflect.Type{
	"controllers": reflect.TypeFor[slinkyv1beta1.Controller](),
	"nodesets":    reflect.TypeFor[slinkyv1beta1.NodeSet](),
	"loginsets":   reflect.TypeFor[slinkyv1beta1.LoginSet](),
	"restapis":    reflect.TypeFor[slinkyv1beta1.RestApi](),
	"accountings": reflect.TypeFor[slinkyv1beta1.Accounting](),
	"tokens":      reflect.TypeFor[slinkyv1beta1.Token](),
}

// crdFix returns the command that upgrades the CRDs, in the namespace from which they were installed. Helm does not do
// it with the operator's chart.
func (s *Snapshot) crdFix() string {
	fix := "helm upgrade --install slurm-operator-crds charts/slurm-operator-crds"
	for i := range s.ResourceTypes.Items {
		if namespace := s.ResourceTypes.Items[i].Metadata.Annotations["meta.helm.sh/release-namespace"]; namespace != "" {
			return fix + " --namespace " + namespace
		}
	}
	return fix
}

// resourceTypes finds CRDs that are missing, or that lack fields. CRDs have no version, and need none: the API server
// silently drops the fields that they lack, which is what matters.
func resourceTypes(s *Snapshot) []Finding {
	if !s.ResourceTypes.Known {
		return nil
	}
	var findings []Finding
	for _, plural := range slices.Sorted(maps.Keys(kinds)) {
		name := plural + "." + slinkyv1beta1.GroupName
		finding := Finding{
			Severity: Error, Check: "OldCRD", Object: "CustomResourceDefinition/" + name,
			Effect: "the API server drops these fields from specs and statuses without a message: settings have no " +
				"effect, and the operator reports less than it knows",
			Advice: "upgrade the CRDs before the operator", Fix: s.crdFix(), Docs: "docs/installation.md#upgrade",
		}
		index := slices.IndexFunc(s.ResourceTypes.Items, func(crd ResourceType) bool { return crd.Metadata.Name == name })
		if index < 0 {
			finding.Check, finding.Problem = "MissingCRD", "the CRD is not installed"
			finding.Effect, finding.Advice = "the operator does not start", "install the CRDs"
			findings = append(findings, finding)
			continue
		}
		if missing := missingFields(&s.ResourceTypes.Items[index], kinds[plural]); len(missing) > 0 {
			finding.Problem = "the CRD is older than this program: it lacks " + strings.Join(missing, ", ")
			findings = append(findings, finding)
		}
	}
	return findings
}

// missingFields returns the fields of spec and status that a CRD lacks.
func missingFields(crd *ResourceType, kind reflect.Type) []string {
	var missing []string
	for _, version := range crd.Spec.Versions {
		if version.Name != slinkyv1beta1.SchemeGroupVersion.Version {
			continue
		}
		for _, part := range []string{"Spec", "Status"} {
			field, _ := kind.FieldByName(part)
			has := version.Schema.OpenAPIV3Schema.Properties[strings.ToLower(part)].Properties
			for _, name := range jsonFields(field.Type) {
				if _, found := has[name]; !found {
					missing = append(missing, strings.ToLower(part)+"."+name)
				}
			}
		}
	}
	return missing
}

// jsonFields returns the names of a struct's fields in JSON.
func jsonFields(structure reflect.Type) []string {
	var names []string
	for field := range structure.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			names = append(names, jsonFields(field.Type)...)
		} else if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}
