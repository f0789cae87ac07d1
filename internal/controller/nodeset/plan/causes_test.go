package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/schedule"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// warmBetween keeps idle Slurm nodes up between two hours of each day in UTC. The scenes are at 12:00.
func warmBetween(from, to, nodes int) edit {
	return sizes(func(e *plan.Elastic) {
		e.Schedules = append(e.Schedules, schedule.Window{
			Warm: nodes, From: time.Duration(from) * time.Hour, To: time.Duration(to) * time.Hour, Zone: time.UTC,
			Days: []time.Weekday{0, 1, 2, 3, 4, 5, 6},
		})
	})
}

func TestElasticSchedule(t *testing.T) {
	const up = ": more idle Slurm nodes should be up at this time"
	warm := func(n int) edit { return sizes(func(e *plan.Elastic) { e.Warm = n }) }
	check(t, map[string]row{
		"powers up Slurm nodes when it begins": {
			elastic(3, warmBetween(12, 19, 2)), []string{"power-up node gpu-0" + up, "power-up node gpu-1" + up},
		},
		"powers up none before it begins": {elastic(3, warmBetween(13, 19, 2)), nil},
		"keeps idle Slurm nodes up":       {elastic(3, idle(time.Hour, 0, 1), warmBetween(7, 19, 2)), nil},
		"powers down idle Slurm nodes when it ends": {
			elastic(3, idle(time.Hour, 0, 1), warmBetween(7, 12, 2)),
			[]string{
				"power-down node gpu-1: it has been idle for 10m0s", "power-down node gpu-0: it has been idle for 10m0s",
			},
		},
		"adds to those that are always warm": {
			elastic(3, warm(1), warmBetween(7, 19, 2)),
			[]string{"power-up node gpu-0: more idle Slurm nodes should be up", "power-up node gpu-1" + up},
		},
		"never lowers their number": {elastic(3, idle(time.Hour, 0, 1), warm(2), warmBetween(7, 19, 1)), nil},
	})
}

func TestElasticScheduleIsPlannedAtItsBoundaries(t *testing.T) {
	for name, test := range map[string]struct {
		scene *plan.Snapshot
		hour  int
	}{
		"when it begins": {elastic(2, warmBetween(13, 19, 1)), 13},
		"when it ends":   {elastic(2, idle(time.Hour, 0), warmBetween(7, 19, 1)), 19},
		"while Slurm does not answer": {
			elastic(2, warmBetween(13, 19, 1), func(s *plan.Snapshot) { s.Answers = false }), 13,
		},
	} {
		if want, got := epoch.Add(time.Duration(test.hour-12)*time.Hour), plan.Next(test.scene).Wake; !got.Equal(want) {
			t.Errorf("%s: the next plan is at %s, want %s", name, got, want)
		}
	}
}

func TestElasticCauses(t *testing.T) {
	minimum := func(n int) edit { return sizes(func(e *plan.Elastic) { e.Min = n }) }
	warm := func(n int) edit { return sizes(func(e *plan.Elastic) { e.Warm = n }) }
	fourIdle := idle(0, 0, 1, 2, 3)
	for name, test := range map[string]struct {
		scene *plan.Snapshot
		want  plan.Causes
	}{
		"all powered down":       {elastic(4), plan.Causes{}},
		"until the idle timeout": {elastic(4, fourIdle), plan.Causes{Idle: 4}},
		"the minimum":            {elastic(4, fourIdle, minimum(3)), plan.Causes{Minimum: 3, Idle: 1}},
		"the minimum includes those with jobs": {
			elastic(4, fourIdle, allocated(7, 0, 1), minimum(3)), plan.Causes{Busy: 2, Minimum: 1, Idle: 1},
		},
		"warm ones beyond the minimum": {
			elastic(4, fourIdle, minimum(1), warm(3)), plan.Causes{Minimum: 1, Warm: 2, Idle: 1},
		},
		"a schedule beyond the warm ones": {
			elastic(4, fourIdle, warm(1), warmBetween(7, 19, 3)), plan.Causes{Warm: 1, Scheduled: 2, Idle: 1},
		},
		"a schedule at another time": {elastic(4, fourIdle, warmBetween(13, 19, 3)), plan.Causes{Idle: 4}},
		"drained ones": {
			elastic(4, fourIdle, closed("broken fan", time.Hour, 1)), plan.Causes{Closed: 1, Idle: 3},
		},
		"a drained one with a job": {
			elastic(4, fourIdle, allocated(7, 1), closed("broken fan", time.Hour, 1)), plan.Causes{Busy: 1, Idle: 3},
		},
		"power-ups and power-downs": {
			elastic(4, waking(7, 0, 1), flags(slurm.FlagPoweringDown, 2)), plan.Causes{PoweringUp: 2, PoweringDown: 1},
		},
		"no snapshot of Slurm": {elastic(4, func(s *plan.Snapshot) { s.Slurm = nil }), plan.Causes{}},
	} {
		t.Run(name, func(t *testing.T) {
			next := plan.Next(test.scene)
			if diff := cmp.Diff(test.want, next.Elastic.Causes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if sum := sumOf(next.Elastic.Causes); sum != next.Desired {
				t.Errorf("%d Slurm nodes are up, of which %d have a cause", next.Desired, sum)
			}
		})
	}
}

// sumOf returns how many Slurm nodes are up.
func sumOf(causes plan.Causes) int {
	return causes.PoweringUp + causes.Busy + causes.Closed + causes.Minimum + causes.Warm + causes.Scheduled +
		causes.Idle
}

func TestElasticJobsAreTheOldest(t *testing.T) {
	var edits []edit
	for i := range 12 {
		edits = append(edits, idle(0, i), allocated(int64(100-i), i))
	}
	edits = append(edits, waking(7, 12, 13), func(s *plan.Snapshot) {
		slices.SortFunc(s.Slurm.Nodes, func(a, b *slurm.Node) int { return strings.Compare(a.Name, b.Name) })
	})
	want := []int64{7, 89, 90, 91, 92, 93, 94, 95, 96, 97}
	if got := plan.Next(elastic(14, edits...)).Elastic.Jobs; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
