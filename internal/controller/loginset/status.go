package loginset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	applyv1beta1 "github.com/slurm-operator/slurm-operator/api/applyconfiguration/api/v1beta1"
	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// obstacle is why nothing can be made yet; nil when there is nothing in the way. What was made before stays.
func obstacle(scope *scope) *status.Verdict {
	spec := scope.set.Spec
	if scope.controller == nil {
		return new(status.Broken(slinkyv1beta1.ReasonControllerNotFound,
			"Controller %s, which spec.controllerRef names, does not exist; create it", spec.ControllerRef.Name))
	}
	if ref := scope.controller.Spec.AccountingRef; ref != nil && scope.accounting == nil && scope.controller.Spec.SlurmKeyRef == nil {
		return new(status.Working(slinkyv1beta1.ReasonControllerNotReady,
			"waiting for Accounting %s, whose key Controller %s uses", ref.Name, scope.controller.Name))
	}
	if scope.slurmKey == nil {
		key := scope.slurmKeyRef()
		return new(status.Working(slinkyv1beta1.ReasonControllerNotReady,
			"waiting for the key of Controller %s: Secret %s, key %s", scope.controller.Name, key.Name, key.Key))
	}
	if ref := spec.SSSDConfRef; ref != nil && scope.sssdConf == nil {
		return new(status.Broken(slinkyv1beta1.ReasonReferenceNotFound, "%s", reference.Missing("spec.sssdConfRef", "Secret", ref.Name, ref.Key)))
	}
	if scope.hostKeys != nil && len(privateKeys(scope.hostKeys)) == 0 {
		return new(status.Broken(slinkyv1beta1.ReasonInvalidSpec,
			"Secret %s holds no host key under a name such as ssh_host_ed25519_key; add one, or delete the Secret and new ones are made",
			naming.LoginHostKeys(scope.set.Name)))
	}
	return nil
}

// An invalid is an error that only a change of the spec mends.
type invalid struct{ error }

// Unwrap is the error itself.
func (e *invalid) Unwrap() error { return e.error }

// mistake is what a failure says about what a person has to mend; nil when it is to be tried again.
func mistake(failure error) *status.Verdict {
	if foreign, ok := errors.AsType[*child.ForeignError](failure); ok {
		return new(status.Broken(slinkyv1beta1.ReasonInvalidSpec, "%v", foreign))
	}
	if invalid, ok := errors.AsType[*invalid](failure); ok {
		return new(status.Broken(slinkyv1beta1.ReasonInvalidSpec, "%v", invalid))
	}
	if apierrors.IsInvalid(failure) {
		return new(status.Broken(slinkyv1beta1.ReasonPodTemplateInvalid, "%v", failure))
	}
	return nil
}

// progress is how far the pods have come.
func progress(scope *scope, failure error) status.Verdict {
	wanted := *scope.set.Spec.Replicas
	if failure != nil {
		return status.Working(slinkyv1beta1.ReasonReconcileError, "%v", failure)
	}
	if trouble := status.PodTrouble(scope.pods); trouble != "" {
		return status.Broken(slinkyv1beta1.ReasonPodsFailing, "%s", trouble)
	}
	is := scope.deployment.Status
	for _, condition := range is.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return status.Broken(slinkyv1beta1.ReasonPodTemplateInvalid, "Kubernetes refuses to create pods: %s", condition.Message)
		}
	}
	switch {
	case is.ObservedGeneration < scope.deployment.Generation:
		return status.Working(slinkyv1beta1.ReasonReconciling, "waiting for Kubernetes to take up the Deployment")
	case is.UpdatedReplicas < wanted:
		return status.Working(slinkyv1beta1.ReasonReconciling, "%d of %d pods are up to date", is.UpdatedReplicas, wanted)
	case is.AvailableReplicas < wanted:
		return status.Working(slinkyv1beta1.ReasonPodsNotReady, "%d of %d pods are ready", is.AvailableReplicas, wanted)
	case is.Replicas > wanted:
		return status.Working(slinkyv1beta1.ReasonReconciling, "%d pods are yet to go", is.Replicas-wanted)
	case wanted == 0:
		return status.Well("no pods are wanted")
	}
	return status.Well("all pods are ready: %d", wanted)
}

func (r *Reconciler) report(ctx context.Context, scope *scope, verdict status.Verdict) error {
	set := scope.set
	conditions := status.NewConditions(set.Generation, set.Status.Conditions, metav1.NewTime(scope.now))
	conditions.Summarize(verdict)
	var pods appsv1.DeploymentStatus
	if scope.deployment != nil {
		pods = scope.deployment.Status
	}
	is := applyv1beta1.LoginSetStatus().
		WithObservedGeneration(set.Generation).
		WithReplicas(pods.Replicas).
		WithReady(fmt.Sprintf("%d/%d", pods.ReadyReplicas, *set.Spec.Replicas)).
		WithSelector(labels.SelectorFromSet(naming.Selector(naming.Login, set.Name)).String())
	is.Conditions = conditions.Configuration()
	return r.Status.Write(ctx, set, conditions, is)
}
