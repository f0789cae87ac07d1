package nodeset

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
)

func TestDecisionEventsAreBatched(t *testing.T) {
	const set = types.UID("set")
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	made := decisions{}
	act := func(kind plan.Kind, cause plan.Cause, first, last int) {
		for n := first; n <= last; n++ {
			name := fmt.Sprintf("gpu-%d", n)
			made.did(set, plan.Action{Kind: kind, Cause: cause}, name, name)
		}
	}
	var notes []string
	report := func(after time.Duration, wantMore time.Duration) {
		t.Helper()
		due, more := made.due(set, begin.Add(after))
		for _, event := range due {
			notes = append(notes, event.note(&plan.Plan{}))
		}
		if want := begin.Add(wantMore); wantMore == 0 && !more.IsZero() || wantMore != 0 && !more.Equal(want) {
			t.Errorf("after %s, the next event is due at %s", after, more)
		}
	}
	report(0, 0)
	act(plan.Drain, plan.Updating, 0, 9)
	act(plan.Create, plan.Missing, 20, 20)
	report(0, 0)
	act(plan.Drain, plan.Updating, 10, 10)
	act(plan.Delete, plan.Updating, 0, 4)
	report(10*time.Second, time.Minute)
	act(plan.Drain, plan.Updating, 11, 13)
	report(20*time.Second, time.Minute)
	report(time.Minute, 0)
	report(time.Hour, 0)
	if len(made.bySet[set]) != 0 {
		t.Errorf("%d decisions are kept after an hour", len(made.bySet[set]))
	}
	want := []string{
		"drained 10 Slurm nodes for an update: gpu-[0-9]",
		"created 1 pod: gpu-20",
		"deleted 5 pods for an update: gpu-[0-4]",
		"drained 4 Slurm nodes for an update: gpu-[10-13]",
	}
	if fmt.Sprint(notes) != fmt.Sprint(want) {
		t.Errorf("events %q, want %q", notes, want)
	}
}

func TestDrainEventReportsRunningJobs(t *testing.T) {
	until := time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)
	wait := func(kind plan.HoldKind, until time.Time) plan.Wait {
		return plan.Wait{Cause: plan.ScaleIn, Hold: plan.Hold{Kind: kind, Until: until}}
	}
	drained := announcement{decision{plan.Drain, plan.ScaleIn}, []string{"gpu-1", "gpu-2"}, []string{"gpu-1", "gpu-2"}}
	for want, waits := range map[string][]plan.Wait{
		"": {wait(plan.Undrained, time.Time{}), {Cause: plan.Updating, Hold: plan.Hold{Kind: plan.Jobs}}},
		"; 2 of them with jobs, the last until 2026-03-01 14:00 UTC": {
			wait(plan.Jobs, until), wait(plan.Jobs, until.Add(-time.Hour)),
		},
		"; 2 of them with jobs, some of which have no time limit": {
			wait(plan.Jobs, until), wait(plan.Jobs, time.Time{}),
		},
	} {
		if note := drained.note(
			&plan.Plan{Waits: waits}); note != "drained 2 Slurm nodes for scale-in: gpu-[1-2]"+want {
			t.Errorf("event %q, want the suffix %q", note, want)
		}
	}
}
