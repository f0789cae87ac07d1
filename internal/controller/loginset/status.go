package loginset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	applyv1beta1 "github.com/slurm-operator/slurm-operator/api/applyconfiguration/api/v1beta1"
	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/sshd"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// obstacle returns why nothing can be created yet, and false if nothing prevents it. Existing objects are left
// unchanged.
func obstacle(scope *scope) (status.Verdict, bool) {
	spec := scope.set.Spec
	if scope.controller == nil {
		return status.Broken(slinkyv1beta1.ReasonControllerNotFound,
			"Controller %s, which spec.controllerRef names, does not exist; create it", spec.ControllerRef.Name), true
	}
	if ref := scope.controller.Spec.AccountingRef; ref != nil && scope.accounting == nil && scope.controller.Spec.SlurmKeyRef == nil {
		return status.Working(slinkyv1beta1.ReasonControllerNotReady,
			"waiting for Accounting %s, whose key Controller %s uses", ref.Name, scope.controller.Name), true
	}
	if scope.slurmKey == nil {
		key := scope.slurmKeyRef()
		return status.Working(slinkyv1beta1.ReasonControllerNotReady,
			"waiting for the key of Controller %s: Secret %s, key %s", scope.controller.Name, key.Name, key.Key), true
	}
	if ref := spec.SSSDConfRef; ref != nil && scope.sssdConf == nil {
		return status.Broken(slinkyv1beta1.ReasonReferenceNotFound, "%s", reference.Missing("spec.sssdConfRef", "Secret", ref.Name, ref.Key)), true
	}
	if scope.hostKeys != nil && len(sshd.PrivateKeys(scope.hostKeys)) == 0 {
		return status.Broken(slinkyv1beta1.ReasonInvalidSpec,
			"Secret %s holds no host key under a name such as ssh_host_ed25519_key; add one, or delete the Secret and new ones are generated",
			naming.LoginHostKeys(scope.set.Name)), true
	}
	return status.Verdict{}, false
}

// invalid is an error that only a change of the spec can fix.
type invalid struct{ error }

// Unwrap returns the error itself.
func (e *invalid) Unwrap() error { return e.error }

// refusal returns the verdict for an error that the user must fix, and false for errors that a retry may fix.
func refusal(err error) (status.Verdict, bool) {
	if invalid, ok := errors.AsType[*invalid](err); ok {
		return status.Broken(slinkyv1beta1.ReasonInvalidSpec, "%v", invalid), true
	}
	return child.Refusal(err)
}

// judge summarizes the state of the LoginSet from its Deployment and its pods.
func judge(scope *scope, failure error) status.Verdict {
	if failure != nil {
		return status.Working(slinkyv1beta1.ReasonReconcileError, "%v", failure)
	}
	set, wanted := scope.set, *scope.set.Spec.Replicas
	ready := status.Well("users log in through port %d of the Service %s", set.Spec.Service.Port, naming.LoginSet(set.Name))
	if wanted == 0 {
		ready = status.Well("the LoginSet is scaled to zero, so users cannot log in")
	}
	return status.Deployment(scope.deployment, scope.pods, wanted, ready)
}

func (r *Reconciler) report(ctx context.Context, scope *scope, verdict status.Verdict) error {
	set := scope.set
	conditions := status.NewConditions(set.Generation, set.Status.Conditions, metav1.NewTime(scope.now))
	conditions.Summarize(verdict)
	var pods appsv1.DeploymentStatus
	if scope.deployment != nil {
		pods = scope.deployment.Status
	}
	conditions.Available(pods.ReadyReplicas > 0, "%d of %d pods are ready", pods.ReadyReplicas, *set.Spec.Replicas)
	newStatus := applyv1beta1.LoginSetStatus().
		WithObservedGeneration(set.Generation).
		WithReplicas(pods.Replicas).
		WithReady(fmt.Sprintf("%d/%d", pods.ReadyReplicas, *set.Spec.Replicas)).
		WithSelector(labels.SelectorFromSet(naming.Selector(naming.Login, set.Name)).String())
	newStatus.Conditions = conditions.Configuration()
	return r.Status.Write(ctx, set, conditions, newStatus)
}
