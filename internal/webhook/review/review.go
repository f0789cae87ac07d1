// Package review checks custom resources before they are stored: for mistakes, and for surprising effects of a change.
//
// A mistake within the object itself is refused. A problem that depends on other objects, which may be created, deleted
// and changed, is only a warning, and so are the effects of a change. A mistake that the object already had is only a
// warning, so that other fields can still be changed. The rules of the schema are not repeated here.
//
// A review is a pure function of the object, its previous version, and the related objects. Objects that could not be
// looked up are not in Found, and checks that need them are skipped. The operator reports all problems again in
// conditions, so nothing depends on a review.
package review

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// A Finding is a message about a field.
type Finding struct {
	// Field is the path, and Value the value or its relevant part.
	Field, Value string
	// Message states the rule and the remedy.
	Message string
}

// String returns the finding on one line.
func (f Finding) String() string {
	if f.Value == "" {
		return f.Field + ": " + f.Message
	}
	return fmt.Sprintf("%s: %q: %s", f.Field, f.Value, f.Message)
}

func find(field, value, format string, arguments ...any) Finding {
	return Finding{Field: field, Value: value, Message: fmt.Sprintf(format, arguments...)}
}

// A Review is the result of a review. The object is refused if there are refusals.
type Review struct {
	Refusals, Warnings []Finding
}

// A Reviewer reviews objects of one resource type. Any function except Spec and References may be nil.
type Reviewer[T any] struct {
	// Spec returns the part that is reviewed: other changes are ignored.
	Spec func(T) any
	// References returns the objects to look up: those that the spec references, and those that it may conflict with.
	References func(T) []Reference
	// Cluster returns the name of the Controller whose NodeSets are looked up.
	Cluster func(T) string
	// Policies is true if the Controllers with a policy for Tokens are looked up.
	Policies bool
	// Faults returns the mistakes that are refused.
	Faults func(T, Found) []Finding
	// Cautions returns warnings about the object itself, in addition to those about references.
	Cautions func(T, Found) []Finding
	// Changes returns warnings about the effects of a change.
	Changes func(before, after T, found Found) []Finding
}

// Create reviews a new object.
func (r Reviewer[T]) Create(object T, found Found) Review {
	return Review{Refusals: r.faults(object, found), Warnings: r.cautions(object, found)}
}

// Update reviews a change.
func (r Reviewer[T]) Update(before, after T, found Found) Review {
	var review Review
	known := r.faults(before, found)
	for _, fault := range r.faults(after, found) {
		if slices.Contains(known, fault) {
			review.Warnings = append(review.Warnings, fault)
		} else {
			review.Refusals = append(review.Refusals, fault)
		}
	}
	review.Warnings = append(review.Warnings, r.cautions(after, found)...)
	if r.Changes != nil {
		review.Warnings = append(review.Warnings, r.Changes(before, after, found)...)
	}
	return review
}

func (r Reviewer[T]) faults(object T, found Found) []Finding {
	if r.Faults == nil {
		return nil
	}
	return r.Faults(object, found)
}

func (r Reviewer[T]) cautions(object T, found Found) []Finding {
	var findings []Finding
	for _, reference := range r.References(object) {
		findings = append(findings, reference.check(found)...)
	}
	if r.Cautions != nil {
		findings = append(findings, r.Cautions(object, found)...)
	}
	return findings
}

// Found holds the related objects that could be looked up.
type Found struct {
	Now time.Time
	// Objects are the results by target. Targets that could not be looked up are missing.
	Objects map[Target]Result
	// NodeSets are those of the cluster.
	NodeSets []slinkyv1beta1.NodeSet
	// Policies are the Controllers of the namespace that have a policy for Tokens.
	Policies []Policy
}

// A Policy is a Controller with a policy for Tokens, and its Accounting, which may be nil.
type Policy struct {
	Controller *slinkyv1beta1.Controller
	Accounting *slinkyv1beta1.Accounting
}

// A Result is the result of looking up one target.
type Result struct {
	// Object is the object; nil if it does not exist. Secrets have only metadata.
	Object metav1.Object
	// Kind is a similar kind that has an object with the name, which the user may have meant; empty if there is none.
	Kind string
	// InOtherNamespace is true if another namespace has such an object.
	InOtherNamespace bool
}

// as returns the object with a kind and name; nil if it does not exist or could not be looked up.
func as[T metav1.Object](found Found, kind, name string) (object T) {
	object, _ = found.Objects[Target{kind, name}].Object.(T)
	return object
}
