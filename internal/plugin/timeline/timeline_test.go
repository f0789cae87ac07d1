package timeline_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/timeline"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

func TestEventsAreOrderedByTime(t *testing.T) {
	now := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	all := []eventsv1.Event{
		{
			Type: corev1.EventTypeNormal, Regarding: corev1.ObjectReference{Kind: "NodeSet", Name: "gpu"},
			Reason: "DeletedPods", Note: "deleted 32 pods for scale-in: gpu-[12-43]", EventTime: metav1.NewMicroTime(ago(3)),
		},
		{
			Type: corev1.EventTypeWarning, Regarding: corev1.ObjectReference{Kind: "Pod", Name: "gpu-1"}, Reason: "BackOff",
			Note: "Back-off pulling image", DeprecatedLastTimestamp: metav1.NewTime(ago(1)), DeprecatedCount: 7,
		},
		{
			Type: corev1.EventTypeNormal, Regarding: corev1.ObjectReference{Kind: "NodeSet", Name: "gpu"},
			Reason: "DrainedNodes", Note: "drained 37 Slurm nodes for scale-in: gpu-[12-48]",
			EventTime: metav1.NewMicroTime(ago(50)),
			Series:    &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(ago(40))},
		},
		{Regarding: corev1.ObjectReference{Kind: "Pod", Name: "other"}, Reason: "Started"},
	}
	result := timeline.Result{Events: timeline.Of(all, func(object *corev1.ObjectReference) bool {
		return object.Name != "other"
	})}
	page := &output.Page{}
	result.Draw(page, now)
	golden.Compare(t, "events.txt", page.String())
}
