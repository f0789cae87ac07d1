// Package timeline orders the events of a cluster's objects: what the operator decided, and what Kubernetes did.
package timeline

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
)

// An Event is an event, reduced to what a timeline shows.
type Event struct {
	Time   time.Time `json:"time"`
	Type   string    `json:"type"`
	Object string    `json:"object"`
	Reason string    `json:"reason"`
	Note   string    `json:"note"`
	// Count is how often it happened, if more than once.
	Count int32 `json:"count,omitempty"`
	// By is what reported it.
	By string `json:"by,omitempty"`
}

// A Result is the answer of the command.
type Result struct {
	Events []Event  `json:"events"`
	Notes  []string `json:"notes,omitempty"`
}

// Of returns the events about objects that are wanted, the oldest first.
func Of(all []eventsv1.Event, wanted func(*corev1.ObjectReference) bool) []Event {
	found := []Event{}
	for i := range all {
		event := &all[i]
		if !wanted(&event.Regarding) {
			continue
		}
		found = append(found, Event{
			Time: lastSeen(event), Type: event.Type, Object: event.Regarding.Kind + "/" + event.Regarding.Name,
			Reason: event.Reason, Note: strings.TrimSpace(event.Note), Count: count(event), By: event.ReportingController,
		})
	}
	slices.SortStableFunc(found, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return found
}

// lastSeen returns when an event last happened. Events of both APIs are served, with different fields.
func lastSeen(event *eventsv1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.DeprecatedLastTimestamp.IsZero():
		return event.DeprecatedLastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	default:
		return event.CreationTimestamp.Time
	}
}

func count(event *eventsv1.Event) int32 {
	seen := event.DeprecatedCount
	if event.Series != nil {
		seen = event.Series.Count
	}
	if seen < 2 {
		return 0
	}
	return seen
}

// Draw writes the events as a table.
func (r *Result) Draw(page *output.Page, now time.Time) {
	rows := make([][]string, len(r.Events))
	for i := range r.Events {
		event := &r.Events[i]
		kind := event.Type
		if kind == corev1.EventTypeWarning {
			kind = page.Warn(kind)
		}
		note := strings.ReplaceAll(event.Note, "\n", " ")
		if event.Count > 0 {
			note += page.Dim(" (" + output.Plural(int(event.Count), "time") + ")")
		}
		rows[i] = []string{output.Age(now, event.Time), kind, event.Object, event.Reason, note}
	}
	if len(rows) == 0 {
		page.Line("there are no events; Kubernetes keeps them for an hour")
	} else {
		page.Table([]string{"AGE", "TYPE", "OBJECT", "REASON", "MESSAGE"}, rows)
	}
	page.Notes(r.Notes)
}
