// Package status tells users how an object does: conditions that are always present, one status patch, and an event for
// each condition that changes.
//
// A controller comes to one Verdict, from which the three standard conditions follow, and adds those of its kind. All of
// them are applied on the server's side, so that two controllers may each own some of an object's conditions.
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

// A Verdict is how an object does, all in all.
type Verdict struct {
	outcome         outcome
	Reason, Message string
}

type outcome uint8

const (
	working outcome = iota
	well
	broken
)

// Well says that all is as the spec says.
func Well(format string, arguments ...any) Verdict {
	return Verdict{well, slinkyv1beta1.ReasonAsExpected, fmt.Sprintf(format, arguments...)}
}

// Working says that the operator is at work, or waits for something that is expected to come by itself.
func Working(reason, format string, arguments ...any) Verdict {
	return Verdict{working, reason, fmt.Sprintf(format, arguments...)}
}

// Broken says that something is wrong that does not mend by itself; the message names the next human action.
func Broken(reason, format string, arguments ...any) Verdict {
	return Verdict{broken, reason, fmt.Sprintf(format, arguments...)}
}

// Problem is a verdict that something is wrong that does not mend by itself; nil stands for none.
func Problem(reason, format string, arguments ...any) *Verdict {
	return new(Broken(reason, format, arguments...))
}

// A Fact is what one condition says.
type Fact struct {
	Is              metav1.ConditionStatus
	Reason, Message string
}

// Ready tells whether the verdict is that all is well.
func (v Verdict) Ready() bool { return v.outcome == well }

// Conditions are what one controller has to say about an object.
type Conditions struct {
	generation int64
	now        metav1.Time
	before     []metav1.Condition
	after      []metav1.Condition
}

// NewConditions begins the conditions of a generation of an object, of which before are those that it has.
func NewConditions(generation int64, before []metav1.Condition, now metav1.Time) *Conditions {
	return &Conditions{generation: generation, now: now, before: before}
}

// Set says one condition. The time of its last transition is kept while its status is.
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

// Say sets one condition.
func (c *Conditions) Say(kind string, fact Fact) {
	c.Set(kind, fact.Is, fact.Reason, "%s", fact.Message)
}

// Summarize sets the three conditions that follow from a verdict. The message is said once, by Ready.
func (c *Conditions) Summarize(verdict Verdict) {
	c.Set(slinkyv1beta1.ConditionReady, truth(verdict.outcome == well), verdict.Reason, "%s", verdict.Message)
	c.Set(slinkyv1beta1.ConditionProgressing, truth(verdict.outcome == working), verdict.Reason, "")
	c.Set(slinkyv1beta1.ConditionDegraded, truth(verdict.outcome == broken), verdict.Reason, "")
}

// Available says whether the object serves its users now, whether or not it is as the spec says.
func (c *Conditions) Available(is bool, format string, arguments ...any) {
	reason := slinkyv1beta1.ReasonNotServing
	if is {
		reason = slinkyv1beta1.ReasonServing
	}
	c.Set(slinkyv1beta1.ConditionAvailable, truth(is), reason, format, arguments...)
}

func truth(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// Configuration is the conditions in the form that server-side apply takes, sorted by type.
func (c *Conditions) Configuration() []applymetav1.ConditionApplyConfiguration {
	slices.SortFunc(c.after, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	configuration := make([]applymetav1.ConditionApplyConfiguration, len(c.after))
	for i, condition := range c.after {
		configuration[i] = *applymetav1.Condition().
			WithType(condition.Type).WithStatus(condition.Status).WithReason(condition.Reason).WithMessage(condition.Message).
			WithObservedGeneration(condition.ObservedGeneration).WithLastTransitionTime(condition.LastTransitionTime)
	}
	return configuration
}

// changed are the conditions that say something else than before. The three that follow from one verdict count as one.
func (c *Conditions) changed() []metav1.Condition {
	var changed []metav1.Condition
	for _, condition := range c.sorted() {
		if condition.Type == slinkyv1beta1.ConditionProgressing || condition.Type == slinkyv1beta1.ConditionDegraded {
			continue
		}
		if old := find(c.before, condition.Type); old == nil || old.Status != condition.Status || old.Reason != condition.Reason {
			changed = append(changed, condition)
		}
	}
	return changed
}

// news are the changed conditions without those that repeat a sentence of another one, which may be another controller's.
func (c *Conditions) news() []metav1.Condition {
	told := map[string]bool{}
	for _, condition := range c.before {
		if find(c.after, condition.Type) == nil {
			told[condition.Message] = true
		}
	}
	return slices.DeleteFunc(c.changed(), func(condition metav1.Condition) bool {
		repeated := told[condition.Message]
		told[condition.Message] = true
		return repeated
	})
}

// sorted are the conditions in the order in which people read them: Ready first.
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

// degraded tells whether the verdict was that something is broken.
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

// maxMessage bounds a message; the API server takes up to 32,768 bytes, but nobody reads that.
const maxMessage = 2048

func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage-len("…")], "") + "…"
}
