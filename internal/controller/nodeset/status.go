package nodeset

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	applyv1beta1 "github.com/slurm-operator/slurm-operator/api/applyconfiguration/api/v1beta1"
	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podfailure"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// report writes the status, a function of the observation, the plan and its outcome.
func (r *Reconciler) report(ctx context.Context, scope *scope, next *plan.Plan, result outcome) error {
	set, counts := scope.set, count(scope, next)
	if awaitsFirstAnswer(scope) && result.failure == nil && staysTrue(scope, next, counts) {
		return nil
	}
	conditions := status.NewConditions(set.Generation, set.Status.Conditions, metav1.NewTime(scope.now))
	conditions.Summarize(judge(scope, next, counts, result.failure))
	conditions.Available(counts.available > 0 || counts.desired == 0, "%d of %d pods are ready", counts.available,
		counts.desired)
	reachable(scope, conditions)
	scaledIn(next, conditions)
	updating(scope, next, result, conditions)
	topologyApplied(result.placement, conditions)
	capacityUnavailable(scope, next, conditions)
	is := applyv1beta1.NodeSetStatus().WithObservedGeneration(set.Generation).
		WithSelector(labels.SelectorFromSet(naming.Selector(naming.Slurmd, set.Name)).String()).
		WithNodeSetHash(scope.revision.hash).
		WithDesired(counts.desired).WithReplicas(counts.pods).WithUpdatedReplicas(counts.updated).
		WithReadyReplicas(counts.ready).
		WithAvailableReplicas(counts.available).WithUnavailableReplicas(max(counts.desired-counts.available, 0)).
		WithSlurmIdle(counts.idle).WithSlurmAllocated(counts.allocated).WithSlurmDown(counts.down).
		WithSlurmDrain(counts.drain)
	is.CollisionCount, is.OrdinalToNode = cmp.Or(result.collisions, scope.revision.collisions), scope.pins.Status()
	is.Conditions, is.Elastic = conditions.Configuration(), elasticStatus(scope, next)
	r.Metrics.waiting(set, next)
	r.Metrics.bill.update(scope)
	r.measurePowerUps(scope)
	return r.Status.Write(ctx, set, conditions, is)
}

// awaitsFirstAnswer reports whether the operator has only just connected to slurmctld, as after its own restart. The
// status of the time before then stays, as that of the Controller does.
func awaitsFirstAnswer(scope *scope) bool {
	return !scope.snapshot.Answers && (scope.session == nil || scope.session.Status().Err == nil) &&
		scope.set.Status.ObservedGeneration == scope.set.Generation && scope.controller != nil &&
		meta.IsStatusConditionTrue(scope.controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable)
}

// staysTrue reports whether the status of a NodeSet that awaits the first answer still holds, as far as Kubernetes
// shows: it does not say that all pods are as the spec wants them, or they are.
func staysTrue(scope *scope, next *plan.Plan, counts counts) bool {
	if !meta.IsStatusConditionTrue(scope.set.Status.Conditions, slinkyv1beta1.ConditionReady) {
		return true
	}
	return scope.problem == nil && scope.template != nil && counts.pods == counts.desired &&
		counts.available >= counts.desired && !isUpdating(scope, next)
}

// firstAnswerWait is after how long a NodeSet that awaits the first answer is reconciled again, without an event.
const firstAnswerWait = 10 * time.Second

// firstAnswerDue returns when to reconcile it again; zero if it does not wait.
func firstAnswerDue(scope *scope) time.Time {
	if !awaitsFirstAnswer(scope) {
		return time.Time{}
	}
	return scope.now.Add(firstAnswerWait)
}

// counts are the numbers in the status.
type counts struct {
	desired, pods, updated, ready, available int32
	idle, allocated, down, drain, unknown    int32
}

func count(scope *scope, next *plan.Plan) counts {
	is := counts{}
	is.desired, is.pods = int32(next.Desired), int32(len(scope.pods)) //nolint:gosec // at most 65536
	is.updated = int32(next.Updated)                                  //nolint:gosec // at most 65536
	for i := range scope.snapshot.Pods {
		pod := &scope.snapshot.Pods[i]
		if pod.Terminating {
			continue
		}
		if !pod.ReadySince.IsZero() {
			is.ready++
			if scope.now.Sub(pod.ReadySince) >= scope.snapshot.Set.MinReady {
				is.available++
			}
		}
		is.addNode(scope.snapshot.Slurm, pod.SlurmNode)
	}
	// as after a restart of the operator: the last known numbers stay
	if before := &scope.set.Status; scope.snapshot.Slurm == nil {
		is.idle, is.allocated = before.SlurmIdle, before.SlurmAllocated
		is.down, is.drain = before.SlurmDown, before.SlurmDrain
	}
	return is
}

func (c *counts) addNode(snapshot *slurm.Snapshot, name string) {
	if snapshot == nil {
		c.unknown++
		return
	}
	node, known := snapshot.Node(name)
	switch {
	case !known:
		c.unknown++
		return
	case node.State == slurm.StateIdle:
		c.idle++
	case node.State == slurm.StateAllocated || node.State == slurm.StateMixed:
		c.allocated++
	case node.State == slurm.StateDown:
		c.down++
	}
	if node.Draining() {
		c.drain++
	}
}

// judge returns the verdict on the NodeSet, worst first.
func judge(scope *scope, next *plan.Plan, counts counts, failure error) status.Verdict {
	for _, verdict := range []func() (status.Verdict, bool){
		func() (status.Verdict, bool) { return obstacle(scope, failure) },
		func() (status.Verdict, bool) { return leaving(scope, next) },
		func() (status.Verdict, bool) { return scalingIn(counts) },
		func() (status.Verdict, bool) { return awaiting(scope, next, counts) },
		func() (status.Verdict, bool) { return starting(scope, next, counts) },
	} {
		if found, decided := verdict(); decided {
			return found
		}
	}
	switch records, waits := recording(scope, next); {
	case !scope.snapshot.Answers:
		return status.Progressing(slinkyv1beta1.ReasonWaitingForSlurm,
			"Slurm does not answer, so the state of its nodes is unknown; no pod is touched meanwhile")
	case waits:
		return records
	case scope.partition != desired.PartitionInForce:
		return judgePartition(scope)
	case counts.down > 0:
		return status.Degraded(slinkyv1beta1.ReasonNodesDown,
			"%d Slurm nodes are down although their pods run; see sinfo -R for the reasons", counts.down)
	case scope.set.Spec.Elastic != nil:
		return judgeElastic(scope, next)
	case counts.desired == 0:
		return status.Ready("the NodeSet is scaled to zero")
	default:
		return status.Ready("%s: %d idle, %d allocated, %d drained", plural(int(counts.desired), "Slurm node"),
			counts.idle, counts.allocated, counts.drain)
	}
}

// obstacle is about errors and invalid specs.
func obstacle(scope *scope, failure error) (status.Verdict, bool) {
	switch refusal, refused := child.Refusal(failure); {
	case refused:
		return refusal, true
	case failure != nil:
		return status.Progressing(slinkyv1beta1.ReasonReconcileError, "%v", failure), true
	case scope.problem != nil && scope.set.DeletionTimestamp == nil:
		return status.Degraded(scope.problem.Reason, "%s", scope.problem.Message), true
	default:
		return status.Verdict{}, false
	}
}

// leaving is about pods that wait for their deletion.
func leaving(scope *scope, next *plan.Plan) (status.Verdict, bool) {
	if scope.set.DeletionTimestamp != nil {
		if len(next.Waits) == 0 && len(scope.pods) == 0 && hasOpenRecords(scope, next) {
			return status.Progressing(slinkyv1beta1.ReasonDeleting,
				"%s still open to jobs, or Slurm does not answer; to delete the NodeSet nevertheless, annotate it with %s=true",
				plural(next.Elastic.Open, "Slurm node"), slinkyv1beta1.AnnotationDeleteWithoutDrain), true
		}
		if len(next.Waits) == 0 {
			return status.Progressing(slinkyv1beta1.ReasonDeleting, "%d pods are being deleted", len(scope.pods)), true
		}
		return status.Progressing(slinkyv1beta1.ReasonDeleting,
			"%s; to delete them nevertheless, and lose their jobs, annotate the NodeSet with %s=true",
			waiting(next.Waits), slinkyv1beta1.AnnotationDeleteWithoutDrain), true
	}
	if next.Stopped != "" {
		return status.Degraded(slinkyv1beta1.ReasonUpdateStopped, "%s", next.Stopped), true
	}
	for _, wait := range next.Waits {
		if wait.Hold.Kind == plan.Unreachable {
			return status.Progressing(slinkyv1beta1.ReasonWaitingForSlurm, "%s", waiting(next.Waits)), true
		}
	}
	if scaleIn := waitsFor(next, plan.ScaleIn); len(scaleIn) > 0 {
		return status.Progressing(slinkyv1beta1.ReasonDraining, "%s", waiting(scaleIn)), true
	}
	return status.Verdict{}, false
}

// scalingIn is about pods that are being deleted, and which are in none of the other numbers.
func scalingIn(counts counts) (status.Verdict, bool) {
	excess := counts.pods - counts.desired
	return status.Progressing(slinkyv1beta1.ReasonScalingIn, "%s being deleted", plural(int(excess), "pod")), excess > 0
}

// awaiting is about pods that cannot be created yet. Without a template for new pods, it is unknown which of the
// existing ones are outdated.
func awaiting(scope *scope, next *plan.Plan, counts counts) (status.Verdict, bool) {
	if scope.template == nil {
		return status.Progressing(slinkyv1beta1.ReasonControllerNotReady, "%s", withheld(scope)), true
	}
	if len(scope.awaited) == 0 || counts.pods >= counts.desired && !isUpdating(scope, next) {
		return status.Verdict{}, false
	}
	return status.Progressing(slinkyv1beta1.ReasonControllerNotReady,
		"%d of %d pods exist, %d are up to date; others wait until slurmctld runs with a configuration that has the GRES "+
			"%s", counts.pods, counts.desired, counts.updated, strings.Join(scope.awaited, ", ")), true
}

// isUpdating reports whether pods of an older revision are replaced without a user action, now or as soon as pods can
// be created.
func isUpdating(scope *scope, next *plan.Plan) bool {
	return next.Outdated > 0 && scope.snapshot.Set.Update.Replace
}

// starting is about pods that have yet to start.
func starting(scope *scope, next *plan.Plan, counts counts) (status.Verdict, bool) {
	var unready []corev1.Pod
	for i := range scope.pods {
		if scope.snapshot.Pods[i].ReadySince.IsZero() {
			unready = append(unready, scope.pods[i])
		}
	}
	trouble := podfailure.Describe(unready)
	switch {
	case trouble != "":
		return status.Degraded(slinkyv1beta1.ReasonPodsFailing, "%s", trouble), true
	case counts.pods < counts.desired:
		text := fmt.Sprintf("%d of %d pods exist, %d are ready", counts.pods, counts.desired, counts.ready)
		if next.Elastic.Held != "" {
			text += "; " + next.Elastic.Held
		}
		return status.Progressing(slinkyv1beta1.ReasonScalingOut, "%s", text), true
	case len(next.Unregistered) > 0:
		return status.Degraded(slinkyv1beta1.ReasonNotRegistered,
			"%d slurmds run and have not registered with Slurm within %s, such as %s; see the log of its pod",
			len(next.Unregistered), scope.snapshot.Set.Registration, next.Unregistered[0]), true
	case isUpdating(scope, next):
		return status.Progressing(slinkyv1beta1.ReasonUpdating, "%s", progress(next)), true
	case counts.available < counts.desired:
		return status.Progressing(slinkyv1beta1.ReasonPodsNotReady, "%d of %d pods are ready", counts.available,
			counts.desired), true
	case scope.snapshot.Answers && counts.unknown > 0:
		return status.Progressing(slinkyv1beta1.ReasonPodsNotReady, "%d slurmds have not registered with Slurm yet",
			counts.unknown), true
	default:
		return status.Verdict{}, false
	}
}

// progress describes how far an update is.
func progress(next *plan.Plan) string {
	text := fmt.Sprintf("%d of %d pods are up to date", next.Updated, next.Updated+next.Outdated)
	if waits := waitsFor(next, plan.Updating); len(waits) > 0 {
		text += "; " + waiting(waits)
	}
	return text
}

func waitsFor(next *plan.Plan, cause plan.Cause) []plan.Wait {
	var found []plan.Wait
	for _, wait := range next.Waits {
		if wait.Cause == cause {
			found = append(found, wait)
		}
	}
	return found
}

// namedWaits is how many waiting pods a message describes.
const namedWaits = 3

// waiting describes what pods wait for.
func waiting(waits []plan.Wait) string {
	texts := make([]string, 0, namedWaits)
	for _, wait := range waits[:min(namedWaits, len(waits))] {
		texts = append(texts, wait.Hold.Why)
	}
	text := fmt.Sprintf("waiting for %d nodes: %s", len(waits), strings.Join(texts, "; "))
	if len(waits) == 1 {
		text = "waiting for 1 node: " + texts[0]
	}
	if more := len(waits) - namedWaits; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// reachable sets whether slurmctld answers.
func reachable(scope *scope, conditions *status.Conditions) {
	set := func(is metav1.ConditionStatus, reason, message string) {
		conditions.Set(slinkyv1beta1.ConditionSlurmReachable, is, reason, "%s", message)
	}
	switch {
	case scope.controller == nil:
		set(metav1.ConditionFalse, slinkyv1beta1.ReasonControllerNotFound,
			"there is no Controller "+scope.set.Spec.ControllerRef.Name)
	case scope.snapshot.Answers, awaitsFirstAnswer(scope):
		set(metav1.ConditionTrue, slinkyv1beta1.ReasonConnected, "slurmctld answers")
	default:
		set(metav1.ConditionFalse, slinkyv1beta1.ReasonControllerNotReady,
			"slurmctld does not answer; see the conditions of Controller "+scope.set.Spec.ControllerRef.Name)
	}
}

// scaledIn sets whether pods in excess have yet to be deleted.
func scaledIn(next *plan.Plan, conditions *status.Conditions) {
	waits := append(waitsFor(next, plan.ScaleIn), waitsFor(next, plan.Deletion)...)
	if len(waits) == 0 {
		conditions.Set(slinkyv1beta1.ConditionScaledIn, metav1.ConditionTrue, slinkyv1beta1.ReasonNoExcess,
			"no pods in excess")
		return
	}
	reason := slinkyv1beta1.ReasonDraining
	if waits[0].Hold.Kind == plan.Unreachable {
		reason = slinkyv1beta1.ReasonWaitingForSlurm
	}
	conditions.Set(slinkyv1beta1.ConditionScaledIn, metav1.ConditionFalse, reason, "%s", waiting(waits))
}

// updating sets whether an update is in progress.
func updating(scope *scope, next *plan.Plan, result outcome, conditions *status.Conditions) {
	set := func(is metav1.ConditionStatus, reason, format string, arguments ...any) {
		conditions.Set(slinkyv1beta1.ConditionUpdateInProgress, is, reason, format, arguments...)
	}
	strategy := scope.set.Spec.UpdateStrategy
	switch {
	case next.Outdated == 0:
		set(metav1.ConditionFalse, slinkyv1beta1.ReasonUpToDate, "all pods are of the current revision")
	case next.Stopped != "":
		set(metav1.ConditionFalse, slinkyv1beta1.ReasonUpdateStopped, "%s", next.Stopped)
	case isUpdating(scope, next):
		set(metav1.ConditionTrue, slinkyv1beta1.ReasonUpdating, "%s", progress(next))
	case strategy.Type == slinkyv1beta1.ScheduledUpdate && strategy.ScheduledUpdate != nil &&
		strategy.ScheduledUpdate.StartTime != nil:
		set(metav1.ConditionFalse, slinkyv1beta1.ReasonUpdateScheduled, "%s", scheduled(scope, next, result.unreserved))
	default:
		set(metav1.ConditionFalse, slinkyv1beta1.ReasonUpdateOnDelete,
			"%d pods of an older revision are replaced when they are deleted by hand", next.Outdated)
	}
}

// scheduled describes when pods are replaced.
func scheduled(scope *scope, next *plan.Plan, unreserved string) string {
	window := scope.set.Spec.UpdateStrategy.ScheduledUpdate
	start, end := window.StartTime.Time, window.StartTime.Add(window.Duration.Duration)
	if !scope.now.Before(end) {
		return fmt.Sprintf("%d pods of an older revision were not replaced before %s; set another startTime",
			next.Outdated, end.UTC().Format("2006-01-02 15:04 MST"))
	}
	text := fmt.Sprintf("%d pods of an older revision are replaced from %s on", next.Outdated,
		start.UTC().Format("2006-01-02 15:04 MST"))
	if unreserved != "" {
		text += "; " + unreserved
	}
	return text
}

// topologyApplied sets whether all Slurm nodes have the topology that their Kubernetes nodes ask for.
func topologyApplied(result *placement, conditions *status.Conditions) {
	set := func(is metav1.ConditionStatus, reason, format string, arguments ...any) {
		conditions.Set(slinkyv1beta1.ConditionTopologyApplied, is, reason, format, arguments...)
	}
	switch {
	case result == nil:
		set(metav1.ConditionUnknown, slinkyv1beta1.ReasonReconciling, "Slurm was not queried")
	case result.misplaced > 0:
		set(metav1.ConditionFalse, result.reason,
			"%d Slurm nodes do not have their topology: %s", result.misplaced, result.why)
	default:
		set(metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected,
			"every Slurm node has the topology that its Kubernetes node asks for")
	}
}
