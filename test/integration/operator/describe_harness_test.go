//go:build integration

package operator_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/slurm-operator/slurm-operator/internal/operator"
)

// Limits of what a failed wait prints, in lines.
const maxDescribed, maxEvents, maxLogged, maxTimers, maxWidth = 100, 10, 15, 15, 240

// describe returns an object of the world with its conditions and events, what the operator has logged last about it,
// and what the operator waits for. Secret values are left out.
func (w *world) describe(tb testing.TB, about client.Object) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), time.Minute)
	defer cancel()
	if about == nil {
		lines := section("the operator's log", logged.about(w.namespace, ""), maxLogged)
		return narrow(append(lines, w.timers()...))
	}
	kind, err := apiutil.GVKForObject(about, operator.Scheme())
	if err != nil {
		return err.Error()
	}
	name := about.GetName()
	title := kind.Kind + " " + name
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	readErr := w.unobserved.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, object)
	lines := section("conditions of "+title, conditionsOf(object), maxEvents)
	lines = append(lines, section("events of "+title, w.eventsOf(ctx, name), maxEvents)...)
	lines = append(lines, section("the operator's log about "+title, logged.about(w.namespace, name), maxLogged)...)
	lines = append(lines, w.timers()...)
	if readErr != nil {
		return narrow(append(lines, fmt.Sprintf("%s: %v", title, readErr)))
	}
	return narrow(append(lines, section(title, printed(object), maxDescribed-len(lines)-1)...))
}

// narrow joins lines and cuts long ones.
func narrow(lines []string) string {
	for i, line := range lines {
		if len(line) > maxWidth {
			lines[i] = strings.ToValidUTF8(line[:maxWidth], "") + "…"
		}
	}
	return strings.Join(lines, "\n")
}

// section returns a title and the last lines of a text.
func section(title string, text []string, most int) []string {
	if len(text) == 0 {
		return []string{title + ": none"}
	}
	if len(text) > most {
		title, text = fmt.Sprintf("%s (the last %d of %d lines)", title, most, len(text)), text[len(text)-most:]
	}
	return append([]string{title + ":"}, indented(text)...)
}

func indented(lines []string) []string {
	var all []string
	for _, line := range lines {
		all = append(all, "  "+line)
	}
	return all
}

// timers returns the timers of the running operator.
func (w *world) timers() []string {
	w.mu.Lock()
	operator := w.operator
	w.mu.Unlock()
	if operator == nil {
		return []string{"the operator is not running"}
	}
	var lines []string
	operator.mu.Lock()
	defer operator.mu.Unlock()
	for _, queue := range operator.queues {
		lines = append(lines, queue.describe()...)
	}
	return section("the operator waits for (it is "+clockTime(time.Now())+")", lines, maxTimers)
}

func conditionsOf(object *unstructured.Unstructured) []string {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return []string{err.Error()}
	}
	var lines []string
	for _, each := range conditions {
		if is, ok := each.(map[string]any); ok {
			lines = append(lines, fmt.Sprintf("%v=%v %v since %v: %v", is["type"], is["status"], is["reason"],
				is["lastTransitionTime"], is["message"]))
		}
	}
	return lines
}

// printed returns an object as YAML.
func printed(object *unstructured.Unstructured) []string {
	object.SetManagedFields(nil)
	unstructured.RemoveNestedField(object.Object, "status", "conditions")
	if object.GetKind() == "Secret" {
		data, _, _ := unstructured.NestedMap(object.Object, "data") // absent in an empty one
		for key, value := range data {
			data[key] = fmt.Sprintf("%d characters", len(fmt.Sprint(value)))
		}
		object.Object["data"] = data
	}
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func (w *world) eventsOf(ctx context.Context, name string) []string {
	events := &eventsv1.EventList{}
	if err := w.unobserved.List(ctx, events, client.InNamespace(w.namespace)); err != nil {
		return []string{err.Error()}
	}
	slices.SortFunc(events.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var lines []string
	for i := range events.Items {
		if event := &events.Items[i]; event.Regarding.Name == name {
			lines = append(lines, fmt.Sprintf("%s %s %s: %s", clockTime(event.EventTime.Time), event.Type, event.Reason,
				event.Note))
		}
	}
	return lines
}

// A journal keeps the last lines of the operators' logs for each world.
type journal struct {
	mu    sync.Mutex
	lines map[string][]string
}

var logged = &journal{lines: map[string][]string{}}

// maxKept is how many lines are kept for each world.
const maxKept = 500

// startLog makes the operators of all worlds log to the journal.
func startLog() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(logged, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, attribute slog.Attr) slog.Attr {
			switch {
			case len(groups) > 0:
			case attribute.Key == slog.TimeKey:
				return slog.String(slog.TimeKey, clockTime(attribute.Value.Time()))
			case attribute.Key == "reconcileID":
				return slog.Attr{}
			}
			return attribute
		},
	})))
}

// ofWorld matches the namespaces of worlds.
var ofWorld = regexp.MustCompile(`\btest-[a-z0-9]{5}\b`)

// Write writes a line.
func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if namespace := string(ofWorld.Find(line)); namespace != "" {
		j.lines[namespace] = append(j.lines[namespace], string(bytes.TrimSpace(line)))
		j.lines[namespace] = j.lines[namespace][max(0, len(j.lines[namespace])-maxKept):]
	}
	return len(line), nil
}

// about returns the lines about a world's object, or about all if the name is empty.
func (j *journal) about(namespace, name string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	named := regexp.MustCompile(`(=|/|\b)` + regexp.QuoteMeta(name) + `( |"|$)`)
	return slices.DeleteFunc(slices.Clone(j.lines[namespace]), func(line string) bool {
		return name != "" && !named.MatchString(line)
	})
}
