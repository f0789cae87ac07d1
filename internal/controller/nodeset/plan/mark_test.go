package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
)

func TestScaleInMarksPods(t *testing.T) {
	marked := func(i int, mark plan.Mark) edit { return pod(i, func(p *plan.Pod) { p.Mark = mark }) }
	waiting := many(replicas(1), drained(1, byUs("scale-in")), busy(0, 0), busy(1, time.Hour))
	scaledOut := many(drained(1, byUs("scale-in")), busy(1, time.Hour))
	cordoned := pod(1, func(p *plan.Pod) { p.Cordoned, p.Mark = true, plan.MarkedByOthers })
	tests := map[string]struct {
		edit edit
		want []string
	}{
		"marks a pod together with its drain":   {replicas(1), []string{"mark gpu-1"}},
		"marks a pod that waits for jobs":       {waiting, []string{"mark gpu-1"}},
		"marks a pod that a user has drained":   {many(waiting, drained(1, "broken fan")), []string{"mark gpu-1"}},
		"does not repeat a mark":                {many(waiting, marked(1, plan.Marked)), nil},
		"marks no pod that is deleted at once":  {many(replicas(1), drained(1, byUs("scale-in"))), nil},
		"marks no terminating pod":              {many(waiting, pod(1, func(p *plan.Pod) { p.Terminating = true })), nil},
		"marks no pod for an update":            {outdated(1), nil},
		"marks no pod of a deleted NodeSet":     {set(func(set *plan.Set) { set.Deleting = true }), nil},
		"marks no pod without Slurm":            {many(waiting, func(s *plan.Snapshot) { s.Answers = false }), nil},
		"keeps a user's cordon at scale-in":     {many(waiting, cordoned), nil},
		"removes its mark at scale-out":         {many(scaledOut, marked(1, plan.Marked)), []string{"unmark gpu-1"}},
		"keeps a user's cordon at scale-out":    {many(scaledOut, cordoned), nil},
		"keeps another value at scale-out":      {many(scaledOut, marked(1, plan.MarkedByOthers)), nil},
		"removes the rest of a mark":            {marked(1, plan.PartlyMarked), []string{"unmark gpu-1"}},
		"removes the rest of a mark before all": {many(waiting, marked(1, plan.PartlyMarked)), []string{"unmark gpu-1"}},
		"moves its mark with the choice": {
			many(replicas(1), drained(1, byUs("scale-in")), busy(1, time.Hour), marked(1, plan.Marked)),
			[]string{"mark gpu-0", "unmark gpu-1"},
		},
		"keeps the mark of a deleted NodeSet": {
			many(marked(1, plan.Marked), set(func(set *plan.Set) { set.Deleting = true })), nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			next := plan.Next(scene(2, test.edit))
			var got []string
			for _, action := range next.Actions {
				if slices.Contains([]plan.Kind{plan.MarkPod, plan.UnmarkPod}, action.Kind) {
					got = append(got, string(action.Kind)+" "+action.Pod.Name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the marks differ (-want +got):\n%s\nin\n%s", diff, next)
			}
		})
	}
}

// TestMarkCausesNothing checks that the operator's own mark is not taken for a user's cordon.
func TestMarkCausesNothing(t *testing.T) {
	marked := pod(1, func(p *plan.Pod) { p.Mark = plan.Marked })
	check(t, map[string]row{
		"lifts the drain of a marked pod": {
			scene(2, drained(1, byUs("scale-in")), marked),
			[]string{"undrain node gpu-1: it may take jobs again", "unmark gpu-1: its mark is out of date"},
		},
		"updates a marked pod": {
			scene(2, outdated(1), marked),
			[]string{
				"drain node gpu-1: slurm-operator: update", "unmark gpu-1: its mark is out of date",
				"keep gpu-1 (Update): gpu-1 is not drained yet",
			},
		},
	})
}
