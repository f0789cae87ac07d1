// Package status reports the state of an object to users: conditions that are always present, one status patch, and an
// event for each condition that changes.
//
// A controller determines one Verdict, from which Ready, Progressing and Degraded follow, and adds Available and the
// conditions of its resource type. All of them are written with server-side apply, so that two controllers may each own
// some conditions of an object.
package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// A Verdict summarizes the state of an object.
type Verdict struct {
	outcome         outcome
	Reason, Message string
}

type outcome uint8

const (
	progressing outcome = iota
	ready
	degraded
)

// Ready returns the verdict that the object matches its spec.
func Ready(format string, arguments ...any) Verdict {
	return Verdict{ready, slinkyv1beta1.ReasonAsExpected, fmt.Sprintf(format, arguments...)}
}

// Progressing returns the verdict that the operator is working towards the spec, or waits for something that needs no
// user action.
func Progressing(reason, format string, arguments ...any) Verdict {
	return Verdict{progressing, reason, fmt.Sprintf(format, arguments...)}
}

// Degraded returns the verdict that there is a problem that does not resolve itself; the message says what the user
// must do.
func Degraded(reason, format string, arguments ...any) Verdict {
	return Verdict{degraded, reason, fmt.Sprintf(format, arguments...)}
}

// Problem returns Degraded as a pointer, for functions that return nil if there is no problem.
func Problem(reason, format string, arguments ...any) *Verdict {
	return new(Degraded(reason, format, arguments...))
}

// A State is the content of one condition.
type State struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

// Ready reports whether the object matches its spec.
func (v Verdict) Ready() bool { return v.outcome == ready }

// Conditions are the conditions of an object that one controller writes.
type Conditions struct {
	generation int64
	now        metav1.Time
	before     []metav1.Condition
	after      []metav1.Condition
}

// NewConditions returns the conditions for a generation of an object; before are its current ones.
func NewConditions(generation int64, before []metav1.Condition, now metav1.Time) *Conditions {
	return &Conditions{generation: generation, now: now, before: before}
}

// Set sets one condition. Its last transition time is kept if its status is unchanged.
func (c *Conditions) Set(kind string, is metav1.ConditionStatus, reason, format string, arguments ...any) {
	condition := metav1.Condition{
		Type: kind, Status: is, Reason: reason, Message: shorten(fmt.Sprintf(format, arguments...)),
		ObservedGeneration: c.generation, LastTransitionTime: metav1.Time{Time: c.now.Truncate(time.Second)},
	}
	if old := find(c.before, kind); old != nil && old.Status == is {
		condition.LastTransitionTime = old.LastTransitionTime
	}
	c.after = append(c.after, condition)
}

// SetState sets one condition.
func (c *Conditions) SetState(kind string, state State) {
	c.Set(kind, state.Status, state.Reason, "%s", state.Message)
}

// Summarize sets the three conditions that follow from a verdict. Only Ready has the message.
func (c *Conditions) Summarize(verdict Verdict) {
	c.Set(slinkyv1beta1.ConditionReady, conditionStatus(verdict.outcome == ready), verdict.Reason, "%s",
		verdict.Message)
	c.Set(slinkyv1beta1.ConditionProgressing, conditionStatus(verdict.outcome == progressing), verdict.Reason, "")
	c.Set(slinkyv1beta1.ConditionDegraded, conditionStatus(verdict.outcome == degraded), verdict.Reason, "")
}

// Available sets whether the object serves its users now, whether or not it matches its spec.
func (c *Conditions) Available(is bool, format string, arguments ...any) {
	reason := slinkyv1beta1.ReasonNotServing
	if is {
		reason = slinkyv1beta1.ReasonServing
	}
	c.Set(slinkyv1beta1.ConditionAvailable, conditionStatus(is), reason, format, arguments...)
}

func conditionStatus(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// Configuration returns the conditions as apply configurations, sorted by type.
func (c *Conditions) Configuration() []applymetav1.ConditionApplyConfiguration {
	slices.SortFunc(c.after, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	configuration := make([]applymetav1.ConditionApplyConfiguration, len(c.after))
	for i, condition := range c.after {
		configuration[i] = *applymetav1.Condition().
			WithType(condition.Type).WithStatus(condition.Status).WithReason(condition.Reason).
			WithMessage(condition.Message).
			WithObservedGeneration(condition.ObservedGeneration).WithLastTransitionTime(condition.LastTransitionTime)
	}
	return configuration
}

// changed returns the conditions whose status or reason has changed. The three that follow from one verdict count as
// one.
func (c *Conditions) changed() []metav1.Condition {
	var changed []metav1.Condition
	for _, condition := range c.sorted() {
		if condition.Type == slinkyv1beta1.ConditionProgressing || condition.Type == slinkyv1beta1.ConditionDegraded {
			continue
		}
		if old := find(c.before, condition.Type); old == nil || old.Status != condition.Status ||
			old.Reason != condition.Reason {
			changed = append(changed, condition)
		}
	}
	return changed
}

// unreported returns the changed conditions without those that repeat the message of another one, possibly of another
// controller.
func (c *Conditions) unreported() []metav1.Condition {
	reported := map[string]bool{}
	for _, condition := range c.before {
		if find(c.after, condition.Type) == nil {
			reported[condition.Message] = true
		}
	}
	return slices.DeleteFunc(c.changed(), func(condition metav1.Condition) bool {
		repeated := reported[condition.Message]
		reported[condition.Message] = true
		return repeated
	})
}

// sorted returns the conditions sorted by type, with Ready first.
func (c *Conditions) sorted() []metav1.Condition {
	return slices.SortedStableFunc(slices.Values(c.after), func(a, b metav1.Condition) int {
		switch slinkyv1beta1.ConditionReady {
		case a.Type:
			return -1
		case b.Type:
			return 1
		}
		return cmp.Compare(a.Type, b.Type)
	})
}

// degraded reports whether the condition Degraded is True.
func (c *Conditions) degraded() bool {
	condition := find(c.after, slinkyv1beta1.ConditionDegraded)
	return condition != nil && condition.Status == metav1.ConditionTrue
}

func find(conditions []metav1.Condition, kind string) *metav1.Condition {
	index := slices.IndexFunc(conditions, func(condition metav1.Condition) bool { return condition.Type == kind })
	if index < 0 {
		return nil
	}
	return &conditions[index]
}

// maxMessage is the maximum length of a message. The API server accepts up to 32,768 bytes, which is too long to read.
const maxMessage = 2048

func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage-len("…")], "") + "…"
}
