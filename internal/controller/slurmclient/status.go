package slurmclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	applyv1beta1 "github.com/slurm-operator/slurm-operator/api/applyconfiguration/api/v1beta1"
	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// report writes the session's state.
func (r *Reconciler) report(ctx context.Context, scope *scope, key slurm.Key) error {
	before := scope.controller.Status
	conditions := status.NewConditions(scope.controller.Generation, before.Conditions, metav1.NewTime(scope.now))
	is, reason, message := reachable(scope)
	if scope.session != nil {
		r.logConnection(ctx, key, reason, scope)
	}
	conditions.Set(slinkyv1beta1.ConditionSlurmReachable, is, reason, "%s", message)
	newStatus := applyv1beta1.ControllerStatus().WithIsReady(is == metav1.ConditionTrue)
	newStatus.Conditions = conditions.Configuration()
	if before.SlurmVersion != "" {
		newStatus.WithSlurmVersion(before.SlurmVersion).WithAPIVersion(before.APIVersion)
	}
	if before.Nodes != nil && before.Jobs != nil {
		newStatus.WithNodes(nodeCounts(*before.Nodes)).
			WithJobs(applyv1beta1.JobCounts().WithRunning(before.Jobs.Running).WithPending(before.Jobs.Pending))
	}
	if scope.session != nil {
		if info := scope.session.Status().Info; info.API != "" {
			newStatus.WithSlurmVersion(info.Version.String()).WithAPIVersion(info.API)
		}
		if snapshot := scope.session.Mirror.Snapshot(); snapshot != nil {
			newStatus.WithNodes(nodeCounts(count(snapshot))).WithJobs(applyv1beta1.JobCounts().
				WithRunning(int32(snapshot.Running)).WithPending(int32(snapshot.Pending))) //nolint:gosec // at most 67 million
		}
	}
	return r.Status.Write(ctx, scope.controller, conditions, newStatus)
}

// logConnection logs the state of a connection, if it is another one than this process has logged.
func (r *Reconciler) logConnection(ctx context.Context, key slurm.Key, reason string, scope *scope) {
	logged, _ := r.logged.Load(key)
	last, _ := logged.(string)
	if what, values := connectionChange(last, reason, scope.session.Status(), scope.now); what != "" {
		log.FromContext(ctx).Info(what, values...)
		r.logged.Store(key, reason)
	}
}

// connectionChange returns the log line about a changed connection; empty if it has not changed since the last line,
// which was about the given reason. Further attempts that fail in the same way are in the log of requests, at level
// debug.
func connectionChange(last, reason string, state slurm.Status, now time.Time) (what string, values []any) {
	if last == reason || !state.Reachable && state.Err == nil {
		return "", nil
	}
	if state.Reachable {
		return "connected to Slurm", []any{"slurmVersion", state.Info.Version.String(), "apiVersion", state.Info.API}
	}
	what = "cannot connect to Slurm"
	switch {
	case errors.Is(state.Err, slurm.Unauthorized):
		what = "Slurm refuses the operator's token"
	case last == slinkyv1beta1.ReasonConnected:
		what = "lost the connection to Slurm"
	}
	retry := max(state.NextAttempt.Sub(now), 0).Round(time.Second)
	return what, []any{"reason", reason, "error", state.Err.Error(), "retryIn", retry.String()}
}

// reachable reports whether the operator reaches slurmctld, and if not, why and what to do. Until a new session has its
// first answer, or the first failure, the cluster stays reachable if it was: Slurm keeps running while the operator
// restarts.
func reachable(scope *scope) (is metav1.ConditionStatus, reason, message string) {
	if scope.session != nil {
		state := scope.session.Status()
		known := meta.FindStatusCondition(scope.controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable)
		if !state.Reachable && state.Err == nil && known != nil && known.Status == metav1.ConditionTrue {
			return known.Status, known.Reason, known.Message
		}
		is, reason, message = answer(state)
		if cause := notReady(scope.restAPI); reason == slinkyv1beta1.ReasonRestAPIUnreachable && cause != "" {
			message += "; " + cause
		}
		return is, reason, message
	}
	if _, problem := decide(scope); problem != nil {
		return metav1.ConditionFalse, problem.reason, problem.message
	}
	return metav1.ConditionFalse, slinkyv1beta1.ReasonConnecting, "there is no connection yet"
}

// notReady returns what a RestApi reports about itself if it is not ready.
func notReady(restAPI *slinkyv1beta1.RestApi) string {
	if restAPI == nil {
		return ""
	}
	condition := meta.FindStatusCondition(restAPI.Status.Conditions, slinkyv1beta1.ConditionReady)
	if condition == nil || condition.Status == metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf("RestApi %s is not ready: %s", restAPI.Name, condition.Message)
}

// slowQueue is the duration of a job query from which on the operator reports that the number of jobs slows it down.
const slowQueue = 5 * time.Second

// answer reports whether slurmctld answers, and if not, why and what to do.
func answer(state slurm.Status) (is metav1.ConditionStatus, reason, message string) {
	switch {
	case state.Reachable && state.Queue.Took > slowQueue:
		// Without numbers: they would change with every read.
		return metav1.ConditionTrue, slinkyv1beta1.ReasonConnected, "slurmctld answers, but there are so many jobs " +
			"that slurmrestd takes seconds to list " +
			"their states, and decisions wait for that; lower MaxJobCount in slurm.conf or MaxSubmitJobs of " +
			"accounts, or from Slurm 26.05 on set spec.metrics.enabled"
	case state.Reachable:
		return metav1.ConditionTrue, slinkyv1beta1.ReasonConnected, "slurmctld answers"
	case state.Err == nil:
		return metav1.ConditionUnknown, slinkyv1beta1.ReasonConnecting, "waiting for the first answer"
	case errors.Is(state.Err, slurm.ControllerDown):
		return metav1.ConditionFalse, slinkyv1beta1.ReasonSlurmctldDown, state.Err.Error()
	case errors.Is(state.Err, slurm.Unauthorized):
		return metav1.ConditionFalse, slinkyv1beta1.ReasonAuthenticationFailed, fmt.Sprintf(
			"%v; the key in spec.jwtKeyRef must be the one that slurmctld runs with, and clocks must agree", state.Err)
	case errors.Is(state.Err, slurm.Unsupported):
		return metav1.ConditionFalse, slinkyv1beta1.ReasonUnsupportedVersion, fmt.Sprintf(
			"%v; use Slurm 24.11 or later", state.Err)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](state.Err); ok {
		return metav1.ConditionFalse, slinkyv1beta1.ReasonEndpointNotVerified, fmt.Sprintf("%v; the operator sends no "+
			"token to a server without the certificate of the RestApi: if the certificate has just changed, the pods "+
			"read it within two minutes, and otherwise check which pods answer", state.Err)
	}
	if errors.Is(state.Err, http.ErrSchemeMismatch) {
		return metav1.ConditionFalse, slinkyv1beta1.ReasonRestAPIUnreachable, fmt.Sprintf("%v; the operator sends no "+
			"token in plain HTTP, and waits until pods with TLS have replaced those of an earlier version", state.Err)
	}
	return metav1.ConditionFalse, slinkyv1beta1.ReasonRestAPIUnreachable, state.Err.Error()
}

// count counts the nodes of a snapshot by state.
func count(snapshot *slurm.Snapshot) slinkyv1beta1.NodeCounts {
	counts := slinkyv1beta1.NodeCounts{Total: int32(len(snapshot.Nodes))} //nolint:gosec // at most 65,536
	for _, node := range snapshot.Nodes {
		switch node.State {
		case slurm.StateIdle:
			counts.Idle++
		case slurm.StateAllocated, slurm.StateMixed:
			counts.Allocated++
		case slurm.StateDown:
			counts.Down++
		case slurm.StateUnknown, slurm.StateError, slurm.StateFuture:
		}
		if node.Flags.Has(slurm.FlagDrain) {
			counts.Drain++
		}
	}
	return counts
}

func nodeCounts(counts slinkyv1beta1.NodeCounts) *applyv1beta1.NodeCountsApplyConfiguration {
	return applyv1beta1.NodeCounts().WithTotal(counts.Total).WithIdle(counts.Idle).WithAllocated(counts.Allocated).
		WithDown(counts.Down).WithDrain(counts.Drain)
}
