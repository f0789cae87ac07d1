// Package review says what is wrong with an object of ours, or surprising about a change to it, before it is stored.
//
// What is wrong with an object in itself, whatever else there is, is refused. What depends on other objects, which may come, go
// and change, is only a warning, and so is what a change will set in motion. A fault that the object had before does not keep
// anybody from changing something else: it is a warning then. The schema's own rules are not repeated here.
//
// Everything is a pure function of the object, what it was before, and what was found around it. What could not be looked up is
// not in Found, and nothing is said about it. The operator says all of it again, in conditions: nothing depends on a review.
package review

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// A Finding is something to say about a field.
type Finding struct {
	// Field is its path, and Value what is there, or the part of it that matters.
	Field, Value string
	// Message is the rule and the remedy.
	Message string
}

// String is the finding on one line.
func (f Finding) String() string {
	if f.Value == "" {
		return f.Field + ": " + f.Message
	}
	return fmt.Sprintf("%s: %q: %s", f.Field, f.Value, f.Message)
}

func find(field, value, format string, arguments ...any) Finding {
	return Finding{Field: field, Value: value, Message: fmt.Sprintf(format, arguments...)}
}

// A Review is what is to be said about an object. It is refused if there is a refusal.
type Review struct {
	Refusals, Warnings []Finding
}

// A Kind says how objects of a kind are reviewed. Any function but Spec may be nil.
type Kind[T any] struct {
	// Spec is what a review is about: a change of anything else is none.
	Spec func(T) any
	// References are what is looked up: other objects that it names, and those that it will meet.
	References func(T) []Reference
	// Cluster is the Controller whose NodeSets are looked up.
	Cluster func(T) string
	// Faults are refused.
	Faults func(T, Found) []Finding
	// Cautions are warnings about the object as it is, besides those about references.
	Cautions func(T, Found) []Finding
	// Changes are warnings about what a change will set in motion.
	Changes func(before, after T, found Found) []Finding
}

// Create reviews a new object.
func (k Kind[T]) Create(object T, found Found) Review {
	return Review{Refusals: k.faults(object, found), Warnings: k.cautions(object, found)}
}

// Update reviews a change.
func (k Kind[T]) Update(before, after T, found Found) Review {
	var review Review
	known := k.faults(before, found)
	for _, fault := range k.faults(after, found) {
		if slices.Contains(known, fault) {
			review.Warnings = append(review.Warnings, fault)
		} else {
			review.Refusals = append(review.Refusals, fault)
		}
	}
	review.Warnings = append(review.Warnings, k.cautions(after, found)...)
	if k.Changes != nil {
		review.Warnings = append(review.Warnings, k.Changes(before, after, found)...)
	}
	return review
}

func (k Kind[T]) faults(object T, found Found) []Finding {
	if k.Faults == nil {
		return nil
	}
	return k.Faults(object, found)
}

func (k Kind[T]) cautions(object T, found Found) []Finding {
	var findings []Finding
	for _, reference := range k.References(object) {
		findings = append(findings, reference.check(found)...)
	}
	if k.Cautions != nil {
		findings = append(findings, k.Cautions(object, found)...)
	}
	return findings
}

// Found is what is around an object, as far as it could be looked up.
type Found struct {
	Now time.Time
	// Objects are what was looked for. What is not in here could not be looked up.
	Objects map[Target]Result
	// NodeSets are those of the cluster.
	NodeSets []slinkyv1beta1.NodeSet
}

// A Result is how a search ended.
type Result struct {
	// Object is what was found; nil when it does not exist. Of Secrets there is only the metadata.
	Object metav1.Object
	// Kind is another kind, which one could mistake for this one, that has an object of the name; empty when it has none.
	Kind string
	// Elsewhere says that another namespace has such an object.
	Elsewhere bool
}

// as returns the object of a kind and name; nil when it does not exist, or could not be looked up.
func as[T metav1.Object](found Found, kind, name string) (object T) {
	object, _ = found.Objects[Target{kind, name}].Object.(T)
	return object
}
