package cluster

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	applyv1beta1 "github.com/slurm-operator/slurm-operator/api/applyconfiguration/api/v1beta1"
	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podfailure"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// report writes this controller's part of the status. The slurmclient controller writes the connection to Slurm, the
// version and the counts.
func (r *Reconciler) report(ctx context.Context, scope *scope, plan plan, failure error) error {
	controller := scope.controller
	conditions := status.NewConditions(controller.Generation, controller.Status.Conditions, metav1.NewTime(scope.now))
	configuration := configurationCondition(scope, plan)
	conditions.SetState(slinkyv1beta1.ConditionConfigurationApplied, configuration)
	conditions.Summarize(verdict(scope, plan, configuration, failure))
	reportAvailability(scope, conditions)
	newStatus := applyv1beta1.ControllerStatus().
		WithObservedGeneration(controller.Generation).
		WithClusterName(naming.ClusterName(controller))
	if !scope.isForeign() {
		newStatus.WithJobConfinement(scope.podConfinement())
	}
	if user := scope.reportedUser(); user != nil {
		newStatus.WithSlurmUser(applyv1beta1.SlurmUser().WithUID(user.UID).WithGID(user.GID))
	}
	if hash := runningHash(scope); hash != "" {
		newStatus.WithAppliedConfigHash(hash)
	}
	newStatus.Conditions = conditions.Configuration()
	return r.Status.Write(ctx, controller, conditions, newStatus)
}

// runningHash returns the hash of the configuration that slurmctld reports to run with; if none answers, the last
// reported one.
func runningHash(scope *scope) string {
	for _, pod := range scope.pods {
		if state := scope.agents[pod.Name]; state.RunningHash != "" {
			return state.RunningHash
		}
	}
	return scope.controller.Status.AppliedConfigHash
}

// configurationCondition reports the progress of the configuration.
func configurationCondition(scope *scope, plan plan) status.State {
	no := func(reason, format string, arguments ...any) status.State {
		return status.State{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, arguments...)}
	}
	last := "; the cluster keeps running on the last good configuration"
	switch {
	case readyPods(scope) == 0 && plan.problem != nil && plan.problem.Reason == slinkyv1beta1.ReasonStateLost:
		last = "" // nothing runs
	case scope.promoted.isClosed():
		last += ", with which no job starts until all slurmds have loaded it or the spec is corrected"
	case scope.promoted == nil:
		last = "; slurmctld starts once there is a configuration that it takes"
	}
	hash := plan.candidate.hash
	switch {
	case plan.problem != nil:
		return no(plan.problem.Reason, "%s%s", plan.problem.Message, last)
	case scope.controller.Spec.External:
		return status.State{
			Status: metav1.ConditionTrue, Reason: slinkyv1beta1.ReasonExternal,
			Message: "slurmctld runs elsewhere, with a configuration of its own",
		}
	}
	switch plan.stage {
	case notBuilt:
		return no(slinkyv1beta1.ReasonReconciling, "the cluster's keys are being generated")
	case begin, validating:
		message := fmt.Sprintf("configuration %s is being validated on a throwaway slurmctld", hash)
		if plan.detail != "" {
			return no(slinkyv1beta1.ReasonTrialFailed, "%s, which does not come up: %s%s", message, plan.detail, last)
		}
		return no(slinkyv1beta1.ReasonTrying, "%s", message)
	case refused:
		return no(slinkyv1beta1.ReasonRefused, "slurmctld refuses configuration %s: %s%s", hash,
			inExtraConf(plan.detail, scope.controller.Spec.ExtraConf), last)
	case validationFailed:
		return no(
			slinkyv1beta1.ReasonTrialFailed, "configuration %s could not be validated: %s; it is validated again "+
				"every minute%s", hash, plan.detail, last)
	case promote, settled:
		if scope.isForeign() {
			return no(slinkyv1beta1.ReasonTakingOver, "%s", takeOverProgress(scope, hash))
		}
	}
	if done, why := applied(scope, hash); !done {
		return no(slinkyv1beta1.ReasonApplying, "configuration %s is being applied to slurmctld: %s", hash, why)
	}
	message := "slurmctld runs with configuration " + hash + leavingMessage(plan.candidate.leaving) +
		heldMessage(plan.candidate.held) + waitingMessage(scope, plan.candidate) +
		scope.confinementMessage()
	if len(plan.candidate.leftOut) > 0 {
		return no(slinkyv1beta1.ReasonNodeSetLeftOut, "slurmctld runs with configuration %s %s", hash,
			leftOutMessage(plan.candidate.leftOut))
	}
	return status.State{Status: metav1.ConditionTrue, Reason: slinkyv1beta1.ReasonApplied, Message: message}
}

// refusedLine matches the line of slurm.conf that slurmctld refuses, as a validation run reports it.
var refusedLine = regexp.MustCompile(`(?m)^slurm\.conf line \d+: (.*)$`)

// inExtraConf replaces the number of a refused line by its number in spec.extraConf, if it comes from there: users do
// not see slurm.conf.
func inExtraConf(detail, extraConf string) string {
	return refusedLine.ReplaceAllStringFunc(detail, func(place string) string {
		text := refusedLine.FindStringSubmatch(place)[1]
		if line, found := slurmconf.Locate(extraConf, text); found {
			return fmt.Sprintf("spec.extraConf line %d: %s", line, text)
		}
		return place
	})
}

// verdict summarizes the state of the cluster: the first problem, or the first thing that is still in progress.
func verdict(scope *scope, plan plan, configuration status.State, failure error) status.Verdict {
	reachable := meta.FindStatusCondition(scope.controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable)
	switch trouble := podfailure.Describe(scope.pods); {
	case failure != nil:
		return status.Progressing(slinkyv1beta1.ReasonReconcileError, "%v", failure)
	case plan.problem != nil,
		configuration.Reason == slinkyv1beta1.ReasonRefused, configuration.Reason == slinkyv1beta1.ReasonTrialFailed:
		return status.Degraded(configuration.Reason, "%s", configuration.Message)
	case trouble != "":
		return status.Degraded(slinkyv1beta1.ReasonPodsFailing, "%s", trouble+costlyReplacement(scope))
	case plan.stage == begin || plan.stage == validating:
		return status.Progressing(configuration.Reason, "%s", configuration.Message)
	case !scope.controller.Spec.External && readyPods(scope) == 0:
		return status.Progressing(slinkyv1beta1.ReasonPodsNotReady, "no slurmctld is ready yet%s",
			waitsForAccounting(scope))
	case configuration.Status != metav1.ConditionTrue && configuration.Reason != slinkyv1beta1.ReasonNodeSetLeftOut:
		return status.Progressing(configuration.Reason, "%s", configuration.Message)
	case reachable == nil:
		return status.Progressing(slinkyv1beta1.ReasonConnecting, "the operator has not yet connected to Slurm")
	case reachable.Status != metav1.ConditionTrue && slices.Contains([]string{
		slinkyv1beta1.ReasonNoRestAPI, slinkyv1beta1.ReasonEndpointNotVerified, slinkyv1beta1.ReasonCertificateInvalid,
	}, reachable.Reason):
		return status.Degraded(reachable.Reason, "%s", reachable.Message)
	case reachable.Status != metav1.ConditionTrue:
		return status.Progressing(reachable.Reason, "%s", reachable.Message)
	case len(plan.candidate.closedBefore) > 0: // no job starts with it
		return status.Progressing(slinkyv1beta1.ReasonApplying, "%s", configuration.Message)
	case configuration.Reason == slinkyv1beta1.ReasonNodeSetLeftOut:
		return status.Degraded(configuration.Reason, "%s", configuration.Message)
	}
	return judgePods(scope)
}

// judgePods is about pods of a slurmctld that is ready.
func judgePods(scope *scope) status.Verdict {
	switch missing, wanted := missingPods(scope), len(naming.ControllerPods(scope.controller)); {
	case scope.controller.Spec.External:
	case len(scope.pods) > wanted: // the pods are sorted, and those of the last backups are deleted
		return status.Progressing(slinkyv1beta1.ReasonUpdating, "%d of %d pods of slurmctld are being deleted, such as %s",
			len(scope.pods)-wanted, len(scope.pods), scope.pods[len(scope.pods)-1].Name)
	case slices.ContainsFunc(scope.pods, scope.isReplaced):
		return status.Progressing(slinkyv1beta1.ReasonUpdating, "%s",
			"the pods of slurmctld are being replaced"+costlyReplacement(scope))
	case missing > 0:
		return status.Progressing(slinkyv1beta1.ReasonPodsNotReady,
			"slurmctld is ready, and %d of its backups do not run yet", missing)
	}
	if silent := slices.IndexFunc(scope.pods, scope.isSilent); silent >= 0 {
		return status.Progressing(slinkyv1beta1.ReasonPodsNotReady,
			"slurmctld is ready, and the agent in pod %s does not answer, so it is not known what that backup runs with",
			scope.pods[silent].Name)
	}
	return status.Ready("slurmctld is ready")
}

// reportAvailability reports whether slurmctld answers. An external slurmctld is visible only through slurmrestd.
func reportAvailability(scope *scope, conditions *status.Conditions) {
	switch {
	case !scope.controller.Spec.External && readyPods(scope) > 0:
		conditions.Available(true, "slurmctld answers")
	case !scope.controller.Spec.External:
		conditions.Available(false, "no slurmctld is ready")
	default:
		reachable := meta.IsStatusConditionTrue(scope.controller.Status.Conditions,
			slinkyv1beta1.ConditionSlurmReachable)
		conditions.Available(reachable, "slurmctld runs elsewhere; see SlurmReachable")
	}
}

// readyPods counts the ready slurmctlds. Of several, only the active one is ready.
func readyPods(scope *scope) int {
	count := 0
	for i := range scope.pods {
		if isReady(&scope.pods[i]) {
			count++
		}
	}
	return count
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// costlyReplacement describes what the replacement of a pod waits for.
func costlyReplacement(scope *scope) string {
	pod := scope.costlyPod()
	if pod == "" {
		return ""
	}
	return fmt.Sprintf("; pod %s is replaced when no job runs, because no PVC keeps its state (spec.persistence), and jobs "+
		"end with that: %s; to replace the pod now, and lose jobs, delete it", pod, scope.describeJobs())
}

// missingPods counts the slurmctlds that should run but do not.
func missingPods(scope *scope) int {
	running := 0
	for _, pod := range scope.pods {
		if pod.Status.Phase == corev1.PodRunning {
			running++
		}
	}
	return max(len(naming.ControllerPods(scope.controller))-running, 0)
}

// waitsForAccounting explains why a starting slurmctld may not become ready.
func waitsForAccounting(scope *scope) string {
	if scope.accounting == nil ||
		meta.IsStatusConditionTrue(scope.accounting.Status.Conditions, slinkyv1beta1.ConditionReady) {
		return ""
	}
	return fmt.Sprintf("; Accounting %s is not ready, and slurmctld waits for it", scope.accounting.Name)
}
