package nodeset

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// elasticNodes returns the scope of an elastic NodeSet.
func elasticNodes() *scope {
	is := twoNodes()
	is.set.Spec.Elastic = &slinkyv1beta1.NodeSetElastic{MaxReplicas: 64}
	is.snapshot.Set.Elastic = &plan.Elastic{
		Slots: []plan.Slot{{SlurmNode: "gpu-0"}, {Ordinal: 1, SlurmNode: "gpu-1"}},
	}
	return is
}

// Another change of the configuration does not concern a NodeSet whose own is done.
func TestPendingConfigurationOfOthersIsNoReasonToWait(t *testing.T) {
	is := elasticNodes()
	is.set.Generation = 3
	is.set.Status.Conditions = []metav1.Condition{{
		Type: slinkyv1beta1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 3,
	}}
	next := &plan.Plan{Desired: 2, Updated: 2, Elastic: plan.Summary{Pending: true}}
	if got := judge(is, next, count(is, next), nil); !got.Ready() {
		t.Errorf("the verdict is %+v", got)
	}
}

func TestJudgeElastic(t *testing.T) {
	schedules := []slinkyv1beta1.ElasticSchedule{{WarmReplicas: 8, From: "07:00", To: "19:00", TimeZone: "UTC"}}
	broken := slices.Clone(schedules)
	broken[0].TimeZone = "Mars"
	for name, test := range map[string]struct {
		schedules []slinkyv1beta1.ElasticSchedule
		summary   plan.Summary
		want      status.Verdict
	}{
		"all powered down": {
			nil, plan.Summary{}, status.Ready("0 of at most 64 Slurm nodes up: 0 with jobs, 0 idle, 0 starting"),
		},
		"warm nodes": {
			nil, plan.Summary{Up: 2, Starting: 1, Busy: 1, Warm: 2},
			status.Ready("3 of at most 64 Slurm nodes up: 1 with jobs, 2 idle, 1 starting; at least 0 stay up, and 2 idle ones"),
		},
		"a schedule": {
			schedules, plan.Summary{Up: 8, Warm: 8, Scheduled: true},
			status.Ready("8 of at most 64 Slurm nodes up: 0 with jobs, 8 idle, 0 starting; at least 0 stay up, and 8 idle " +
				"ones by schedule"),
		},
		"a powered-down node has the record of a former spec": {
			nil, plan.Summary{Outdated: 1, FirstOutdated: "gpu-7"}, status.Progressing(slinkyv1beta1.ReasonUpdating,
				"1 Slurm node has another record in slurm.conf than the spec asks for (gpu-7): a record is changed, or "+
					"removed, when its node is drained and has no jobs; see sinfo, and the conditions of Controller slurm"),
		},
		"records of a former spec": {
			nil, plan.Summary{Outdated: 5, FirstOutdated: "gpu-5"}, status.Progressing(slinkyv1beta1.ReasonUpdating,
				"5 Slurm nodes have another record in slurm.conf than the spec asks for (such as gpu-5): a record is changed, "+
					"or removed, when its node is drained and has no jobs; see sinfo, and the conditions of Controller slurm"),
		},
		"slurmctld does not run with the new records yet": {
			nil, plan.Summary{Pending: true}, status.Progressing(slinkyv1beta1.ReasonControllerNotReady,
				"slurmctld does not run with the records of the NodeSet yet; see the conditions of Controller slurm"),
		},
		"a schedule without effect": {
			broken, plan.Summary{}, status.Degraded(slinkyv1beta1.ReasonInvalidSpec,
				"spec.elastic.schedules[0].timeZone: there is no time zone \"Mars\"; use a name of the IANA time zone database, "+
					"such as Europe/Berlin; the schedule has no effect until then"),
		},
	} {
		is := elasticNodes()
		is.set.Spec.Elastic.Schedules = test.schedules
		next := &plan.Plan{Desired: 2, Updated: 2, Elastic: test.summary}
		if got := judge(is, next, count(is, next), nil); got != test.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, test.want)
		}
	}
}

func TestElasticStatus(t *testing.T) {
	is := elasticNodes()
	next := &plan.Plan{Elastic: plan.Summary{
		Causes: plan.Causes{
			PoweringUp: 1, Busy: 2, Closed: 3, Minimum: 4, Warm: 5, Scheduled: 6, Idle: 7, PoweringDown: 8,
		},
		Jobs: []int64{7, 8},
	}}
	want := slinkyv1beta1.NodeSetElasticStatus{
		PoweringUp: 1, Busy: 2, Closed: 3, Minimum: 4, Warm: 5, Scheduled: 6, Idle: 7, PoweringDown: 8,
		Jobs: []int64{7, 8}, JobsChangedAt: &metav1.Time{Time: noon},
	}
	check := func(got *slinkyv1beta1.NodeSetElasticStatus) {
		t.Helper()
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	check(written(is, next))
	is.set.Status.Elastic = &want
	is.snapshot.Slurm = nil
	check(written(is, &plan.Plan{})) // the last known values stay
	if got := elasticStatus(twoNodes(), next); got != nil {
		t.Errorf("a NodeSet that is not elastic has %+v", got)
	}
}

// written returns the status that is written.
func written(is *scope, next *plan.Plan) *slinkyv1beta1.NodeSetElasticStatus {
	applied := elasticStatus(is, next)
	return &slinkyv1beta1.NodeSetElasticStatus{
		PoweringUp: *applied.PoweringUp, Busy: *applied.Busy, Closed: *applied.Closed, Minimum: *applied.Minimum,
		Warm: *applied.Warm, Scheduled: *applied.Scheduled, Idle: *applied.Idle, PoweringDown: *applied.PoweringDown,
		Jobs: applied.Jobs, JobsChangedAt: applied.JobsChangedAt,
	}
}

func TestListedJobsChangeAtMostOncePerMinute(t *testing.T) {
	before := &slinkyv1beta1.NodeSetElasticStatus{Jobs: []int64{7}, JobsChangedAt: &metav1.Time{Time: noon}}
	none := &slinkyv1beta1.NodeSetElasticStatus{}
	soon, later := noon.Add(time.Second), noon.Add(time.Minute)
	for name, test := range map[string]struct {
		before  *slinkyv1beta1.NodeSetElasticStatus
		jobs    []int64
		now     time.Time
		want    []int64
		changed time.Time
		due     time.Time
	}{
		"the same jobs":                  {before, []int64{7}, later, []int64{7}, noon, time.Time{}},
		"the first job":                  {none, []int64{7}, soon, []int64{7}, soon, time.Time{}},
		"no more jobs":                   {before, nil, soon, nil, soon, time.Time{}},
		"another job within the minute":  {before, []int64{8}, soon, []int64{7}, noon, later},
		"another job after the minute":   {before, []int64{8}, later, []int64{8}, later, time.Time{}},
		"an additional job, soon":        {before, []int64{7, 8}, soon, []int64{7}, noon, later},
		"no jobs, as before, after long": {none, nil, later, nil, time.Time{}, time.Time{}},
	} {
		shown, changed, due := listJobs(test.before, test.jobs, test.now)
		at := time.Time{}
		if changed != nil {
			at = changed.Time
		}
		if !slices.Equal(shown, test.want) || !at.Equal(test.changed) || !due.Equal(test.due) {
			t.Errorf("%s: shows %v since %s, due at %s", name, shown, at, due)
		}
	}
}

func TestJobsAreDue(t *testing.T) {
	is := elasticNodes()
	next := &plan.Plan{Elastic: plan.Summary{Jobs: []int64{8}}}
	if due := jobsDue(is, next); !due.IsZero() {
		t.Errorf("without a status they are due at %s", due)
	}
	is.set.Status.Elastic = &slinkyv1beta1.NodeSetElasticStatus{Jobs: []int64{7}, JobsChangedAt: &metav1.Time{Time: noon}}
	if got := pause(is, next, outcome{}, time.Time{}); got != time.Minute {
		t.Errorf("the next reconcile is in %s", got)
	}
	is.snapshot.Slurm = nil
	if due := jobsDue(is, next); !due.IsZero() {
		t.Errorf("without Slurm they are due at %s", due)
	}
}
