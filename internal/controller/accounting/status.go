package accounting

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	applyv1beta1 "github.com/slurm-operator/slurm-operator/api/applyconfiguration/api/v1beta1"
	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podfailure"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

func (r *Reconciler) report(ctx context.Context, scope *scope, plan plan, failure error) error {
	accounting, verdict := scope.accounting, plan.verdict
	database := judgeDatabase(scope)
	database.since = since(accounting, database.Status, scope.now)
	switch {
	case failure != nil:
		verdict = status.Progressing(slinkyv1beta1.ReasonReconcileError, "%v", failure)
	case plan.children != nil:
		verdict = judge(scope, database)
	case plan.remove:
		verdict = judgeRemoval(scope, verdict)
	}
	conditions := status.NewConditions(accounting.Generation, accounting.Status.Conditions, metav1.NewTime(scope.now))
	conditions.Summarize(verdict)
	switch {
	case accounting.Spec.External:
		conditions.Set(slinkyv1beta1.ConditionAvailable, metav1.ConditionUnknown, slinkyv1beta1.ReasonExternal,
			"slurmdbd runs elsewhere")
	case slices.ContainsFunc(scope.pods, isReady):
		conditions.Available(true, "slurmdbd answers")
	default:
		conditions.Available(false, "slurmdbd is not ready")
	}
	conditions.SetState(slinkyv1beta1.ConditionDatabaseReachable, database.State)
	newStatus := applyv1beta1.AccountingStatus().WithObservedGeneration(accounting.Generation)
	if user := scope.slurmUser(); !accounting.Spec.External {
		newStatus.WithSlurmUser(applyv1beta1.SlurmUser().WithUID(user.UID).WithGID(user.GID))
	}
	newStatus.Conditions = conditions.Configuration()
	return r.Status.Write(ctx, accounting, conditions, newStatus)
}

// A finding is the content of the condition DatabaseReachable.
type finding struct {
	status.State
	// since is the condition's last transition.
	since time.Time
}

// since returns when the condition DatabaseReachable got the given status.
func since(accounting *slinkyv1beta1.Accounting, is metav1.ConditionStatus, now time.Time) time.Time {
	before := meta.FindStatusCondition(accounting.Status.Conditions, slinkyv1beta1.ConditionDatabaseReachable)
	if before == nil || before.Status != is {
		return now
	}
	return before.LastTransitionTime.Time
}

// refusals are the error codes with which a reachable server denies access: missing privileges on the database, a wrong
// password, a forbidden host, an authentication that needs a local socket, an unknown database.
var refusals = []int{1044, 1045, 1130, 1698, 1049}

const (
	// tlsError is the code of all errors of the client library about TLS.
	tlsError = 2026
	// tlsRequired is the code with which a server refuses a connection that is not encrypted.
	tlsRequired = 3159
)

// judgeDatabase determines whether slurmdbd reaches its database.
func judgeDatabase(scope *scope) finding {
	if scope.accounting.Spec.External {
		return finding{
			State: status.State{
				Status: metav1.ConditionUnknown, Reason: slinkyv1beta1.ReasonExternal,
				Message: "slurmdbd runs elsewhere; the operator does not query it",
			},
		}
	}
	if slices.ContainsFunc(scope.pods, isReady) {
		return finding{
			State: status.State{
				Status: metav1.ConditionTrue, Reason: slinkyv1beta1.ReasonAsExpected,
				Message: "slurmdbd answers from its database",
			},
		}
	}
	storage, report := scope.accounting.Spec.StorageConfig, scope.database
	switch {
	case isConverting(scope):
		return finding{
			State: status.State{
				Status: metav1.ConditionTrue, Reason: slinkyv1beta1.ReasonConvertingDatabase,
				Message: "slurmdbd is connected to its database, and converts it",
			},
		}
	case report == nil || report.Code == 0:
		return finding{
			State: status.State{
				Status: metav1.ConditionUnknown, Reason: slinkyv1beta1.ReasonReconciling,
				Message: "slurmdbd has not reported yet whether it reaches its database",
			},
		}
	case slices.Contains(refusals, report.Code):
		return finding{State: status.State{Status: metav1.ConditionFalse,
			Reason: slinkyv1beta1.ReasonDatabaseAccessDenied, Message: "the database server " + storage.Host +
				" refuses slurmdbd: " +
				report.Text + "; check spec.storageConfig, the password in Secret " + storage.PasswordKeyRef.Name +
				" and the user's privileges"}}
	case report.Code == tlsRequired:
		return finding{State: status.State{Status: metav1.ConditionFalse,
			Reason: slinkyv1beta1.ReasonDatabaseAccessDenied, Message: "the database server " + storage.Host +
				" requires TLS: " + report.Text + "; set spec.storageConfig.tls"}}
	case report.Code == tlsError:
		return finding{State: status.State{Status: metav1.ConditionFalse,
			Reason: slinkyv1beta1.ReasonDatabaseUnreachable, Message: "slurmdbd has no trusted connection to its database: " +
				report.Text + "; check that the server offers TLS, and that its certificate is for " + storage.Host +
				" and from the CA in spec.storageConfig.tls"}}
	default:
		return finding{State: status.State{Status: metav1.ConditionFalse,
			Reason: slinkyv1beta1.ReasonDatabaseUnreachable, Message: "slurmdbd does not reach its database: " +
				report.Text + "; check that the server runs, and spec.storageConfig.host and port"}}
	}
}

// databaseStartGrace is how long an unreachable database is assumed to be starting, like slurmdbd.
const databaseStartGrace = time.Minute

// judge summarizes the state of slurmdbd from its StatefulSet, its pod and its database.
func judge(scope *scope, database finding) status.Verdict {
	set := scope.statefulSet
	if set.Status.ObservedGeneration < set.Generation {
		return status.Progressing(slinkyv1beta1.ReasonReconciling, "slurmdbd's pod is being created")
	}
	if conversion := describeConversion(scope); conversion != "" {
		return status.Progressing(slinkyv1beta1.ReasonConvertingDatabase, "%s", conversion)
	}
	if termination := describeTermination(scope); termination != "" {
		return status.Progressing(slinkyv1beta1.ReasonReconciling, "%s", termination)
	}
	if outdated(scope) != nil {
		return status.Progressing(slinkyv1beta1.ReasonReconciling, "slurmdbd's pod is being replaced")
	}
	if trouble := podfailure.Describe(scope.pods); trouble != "" {
		return status.Degraded(slinkyv1beta1.ReasonPodsFailing, "%s", trouble)
	}
	if database.Status == metav1.ConditionTrue {
		return status.Ready("slurmdbd answers on port %d of the Service %s", scope.accounting.Spec.Service.Port,
			naming.Accounting(scope.accounting.Name))
	}
	if database.Reason == slinkyv1beta1.ReasonDatabaseUnreachable &&
		scope.now.Sub(database.since) < databaseStartGrace {
		return status.Progressing(database.Reason, "%s", database.Message)
	}
	if database.Status == metav1.ConditionFalse {
		return status.Degraded(database.Reason, "%s", database.Message)
	}
	return status.Progressing(slinkyv1beta1.ReasonPodsNotReady, "slurmdbd is starting")
}

// judgeRemoval returns the verdict for a slurmdbd that is to run elsewhere; whenGone is the verdict without a pod.
func judgeRemoval(scope *scope, whenGone status.Verdict) status.Verdict {
	if len(scope.pods) == 0 {
		return whenGone
	}
	return status.Progressing(slinkyv1beta1.ReasonReconciling,
		"slurmdbd is to run elsewhere, and pod %s has not terminated yet", scope.pods[0].Name)
}

func isReady(pod corev1.Pod) bool {
	return pod.DeletionTimestamp == nil &&
		slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		})
}
