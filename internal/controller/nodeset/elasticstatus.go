package nodeset

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	applyv1beta1 "github.com/slurm-operator/slurm-operator/api/applyconfiguration/api/v1beta1"
	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/provisioning"
	"github.com/slurm-operator/slurm-operator/internal/schedule"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// elasticStatus returns why Slurm nodes of an elastic NodeSet are up; nil for others.
func elasticStatus(scope *scope, next *plan.Plan) *applyv1beta1.NodeSetElasticStatusApplyConfiguration {
	if scope.set.Spec.Elastic == nil {
		return nil
	}
	before := scope.set.Status.Elastic
	if before == nil {
		before = &slinkyv1beta1.NodeSetElasticStatus{}
	}
	causes, jobs := next.Elastic.Causes, next.Elastic.Jobs
	if scope.snapshot.Slurm == nil { // as after a restart of the operator: the last known values stay
		causes, jobs = causesIn(before), before.Jobs
	}
	is := applyv1beta1.NodeSetElasticStatus().
		WithPoweringUp(number(causes.PoweringUp)).WithBusy(number(causes.Busy)).
		WithMinimum(number(causes.Minimum)).WithWarm(number(causes.Warm)).WithScheduled(number(causes.Scheduled)).
		WithIdle(number(causes.Idle)).WithClosed(number(causes.Closed)).WithPoweringDown(number(causes.PoweringDown))
	is.Jobs, is.JobsChangedAt, _ = listJobs(before, jobs, scope.now)
	if failure := provisioningFailure(scope, next); failure != "" {
		is.WithProvisioningFailure(failure)
	}
	return is
}

// provisioningFailure returns why the last ProvisioningRequest failed, while Slurm nodes are closed because of it;
// empty if there is nothing to say. The request itself is deleted when they are closed.
func provisioningFailure(scope *scope, next *plan.Plan) string {
	before := scope.set.Status.Elastic
	if next.Elastic.Refusal != "" || before == nil || scope.snapshot.Slurm != nil && next.Elastic.Unplaced == 0 {
		return next.Elastic.Refusal
	}
	return before.ProvisioningFailure
}

// causesIn returns the counts in a status.
func causesIn(is *slinkyv1beta1.NodeSetElasticStatus) plan.Causes {
	return plan.Causes{
		PoweringUp: int(is.PoweringUp), Busy: int(is.Busy), Closed: int(is.Closed), Minimum: int(is.Minimum),
		Warm: int(is.Warm), Scheduled: int(is.Scheduled), Idle: int(is.Idle), PoweringDown: int(is.PoweringDown),
	}
}

// number converts a count of Slurm nodes.
func number(count int) int32 { return int32(count) } //nolint:gosec // at most 65536

// jobsInterval is the least time between two changes of the jobs in the status. Short jobs start and end all the time,
// and each write reaches every watcher.
const jobsInterval = time.Minute

// listJobs returns the jobs that the status shows, when they last changed, and when they must change again; zero if
// they are right. Whether there are any is shown at once.
func listJobs(before *slinkyv1beta1.NodeSetElasticStatus, jobs []int64, now time.Time) (shown []int64,
	changed *metav1.Time, due time.Time) {
	switch {
	case slices.Equal(before.Jobs, jobs):
		return before.Jobs, before.JobsChangedAt, time.Time{}
	case len(jobs) == 0 || len(before.Jobs) == 0 || before.JobsChangedAt == nil:
	case now.Before(before.JobsChangedAt.Add(jobsInterval)):
		return before.Jobs, before.JobsChangedAt, before.JobsChangedAt.Add(jobsInterval)
	}
	return jobs, &metav1.Time{Time: now.Truncate(time.Second)}, time.Time{}
}

// jobsDue returns when the jobs in the status must change; zero if they are right.
func jobsDue(scope *scope, next *plan.Plan) time.Time {
	before := scope.set.Status.Elastic
	if scope.set.Spec.Elastic == nil || before == nil || scope.snapshot.Slurm == nil {
		return time.Time{}
	}
	_, _, due := listJobs(before, next.Elastic.Jobs, scope.now)
	return due
}

// recording is about records in slurm.conf that are not as the spec wants them.
func recording(scope *scope, next *plan.Plan) (status.Verdict, bool) {
	is, controller := next.Elastic, scope.set.Spec.ControllerRef.Name
	switch {
	case is.Missing > 0:
		return status.Progressing(slinkyv1beta1.ReasonControllerNotReady,
			"%d of at most %s not in the configuration of slurmctld yet; see the conditions of Controller %s", is.Missing,
			plural(int(scope.set.Spec.Elastic.MaxReplicas), "Slurm node"), controller), true
	case is.Outdated > 0:
		nodes := "1 Slurm node has another record in slurm.conf than the spec asks for (" + is.FirstOutdated + ")"
		if is.Outdated > 1 {
			nodes = fmt.Sprintf("%d Slurm nodes have another record in slurm.conf than the spec asks for (such as %s)",
				is.Outdated, is.FirstOutdated)
		}
		return status.Progressing(slinkyv1beta1.ReasonUpdating, "%s: a record is changed, or removed, when its node is "+
			"drained and has no jobs; see sinfo, and the conditions of Controller %s", nodes, controller), true
	case is.Pending && scope.set.Spec.Elastic != nil && !isDone(scope.set):
		return status.Progressing(slinkyv1beta1.ReasonControllerNotReady,
			"slurmctld does not run with the records of the NodeSet yet; see the conditions of Controller %s",
			controller), true
	}
	return status.Verdict{}, false
}

// judgeElastic returns the verdict on an elastic NodeSet of which all else is as expected.
func judgeElastic(scope *scope, next *plan.Plan) status.Verdict {
	if _, err := schedule.Of(scope.set.Spec.Elastic); err != nil {
		return status.Degraded(slinkyv1beta1.ReasonInvalidSpec, "%v; the schedule has no effect until then", err)
	}
	if scope.unprovisioned {
		return status.Degraded(slinkyv1beta1.ReasonInvalidSpec, "spec.elastic.provisioning: Kubernetes has no "+
			"ProvisioningRequests (%s); install the CRD of cluster-autoscaler, or remove the field; pods are created "+
			"without them until then", provisioning.Version)
	}
	return status.Ready("%s", elasticMessage(scope, next))
}

// elasticMessage describes which Slurm nodes of an elastic NodeSet are up, and why.
func elasticMessage(scope *scope, next *plan.Plan) string {
	is, spec := next.Elastic, scope.set.Spec.Elastic
	text := fmt.Sprintf("%d of at most %s up: %d with jobs, %d idle, %d starting", is.Up+is.Starting,
		plural(int(spec.MaxReplicas), "Slurm node"), is.Busy, max(is.Up+is.Starting-is.Busy, 0), is.Starting)
	if spec.MinReplicas > 0 || is.Warm > 0 {
		text += fmt.Sprintf("; at least %d stay up, and %d idle ones", spec.MinReplicas, is.Warm)
	}
	if is.Scheduled {
		text += " by schedule"
	}
	if is.Held != "" {
		text += "; " + is.Held
	}
	return text
}

// capacityUnavailable sets whether Slurm nodes of an elastic NodeSet are closed because they could not be started.
func capacityUnavailable(scope *scope, next *plan.Plan, conditions *status.Conditions) {
	if scope.set.Spec.Elastic == nil {
		return
	}
	set := func(is metav1.ConditionStatus, reason, format string, arguments ...any) {
		conditions.Set(slinkyv1beta1.ConditionCapacityUnavailable, is, reason, format, arguments...)
	}
	is := next.Elastic
	retry := is.Retry.UTC().Format("15:04:05 MST")
	switch {
	case scope.snapshot.Slurm == nil:
		set(metav1.ConditionUnknown, slinkyv1beta1.ReasonWaitingForSlurm, "Slurm was not queried yet")
	case is.Unplaced > 0:
		cause, remedy := "", "see why pods are not scheduled (kubectl get events)"
		if failure := provisioningFailure(scope, next); failure != "" {
			cause, remedy = ", says "+failure, "see the log of cluster-autoscaler"
		}
		set(metav1.ConditionTrue, slinkyv1beta1.ReasonUnschedulable,
			"Kubernetes has no room for more pods%s: %s closed to jobs until %s at the earliest; add Kubernetes nodes, or %s",
			cause, plural(is.Unplaced, "Slurm node"), retry, remedy)
	case is.Failed > 0:
		set(metav1.ConditionTrue, slinkyv1beta1.ReasonStartTimeout,
			"pods did not start in time: %s closed to jobs until %s at the earliest; see the events of the pods",
			plural(is.Failed, "Slurm node"), retry)
	default:
		set(metav1.ConditionFalse, slinkyv1beta1.ReasonAsExpected, "no Slurm node is closed for lack of capacity")
	}
}
