package restapi

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	applyv1beta1 "github.com/slurm-operator/slurm-operator/api/applyconfiguration/api/v1beta1"
	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

func (r *Reconciler) report(ctx context.Context, scope *scope, plan plan, failure error) error {
	restAPI, verdict := scope.restAPI, plan.verdict
	switch {
	case failure != nil:
		verdict = status.Working(slinkyv1beta1.ReasonReconcileError, "%v", failure)
	case plan.children != nil:
		verdict = judge(restAPI, scope.deployment, scope.pods)
	}
	conditions := status.NewConditions(restAPI.Generation, restAPI.Status.Conditions, metav1.NewTime(scope.now))
	conditions.Summarize(verdict)
	var exist, ready int32
	if scope.deployment != nil {
		exist, ready = scope.deployment.Status.Replicas, scope.deployment.Status.ReadyReplicas
	}
	conditions.Available(ready > 0, "%d of %d pods are ready", ready, replicas(restAPI))
	is := applyv1beta1.RestApiStatus().WithObservedGeneration(restAPI.Generation).
		WithSelector(labels.SelectorFromSet(naming.Selector(naming.Slurmrestd, restAPI.Name)).String()).
		WithReplicas(exist).WithReady(fmt.Sprintf("%d/%d", ready, replicas(restAPI)))
	is.Conditions = conditions.Configuration()
	return r.Status.Write(ctx, restAPI, conditions, is)
}

// judge says how slurmrestd does, from its Deployment and its pods.
func judge(restAPI *slinkyv1beta1.RestApi, deployment *appsv1.Deployment, pods []corev1.Pod) status.Verdict {
	want, is := replicas(restAPI), deployment.Status
	if is.ObservedGeneration < deployment.Generation {
		return status.Working(slinkyv1beta1.ReasonReconciling, "slurmrestd's pods are being made")
	}
	if is.ReadyReplicas == want && is.UpdatedReplicas == want && is.Replicas == want {
		if want == 0 {
			return status.Well("slurmrestd is scaled to zero, so it does not answer")
		}
		return status.Well("slurmrestd answers on port %d of the Service %s", restAPI.Spec.Service.Port, naming.RestAPI(restAPI.Name))
	}
	for _, condition := range is.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return status.Broken(slinkyv1beta1.ReasonPodsFailing, "Kubernetes does not create a pod: %s", condition.Message)
		}
	}
	if trouble := status.PodTrouble(pods); trouble != "" {
		return status.Broken(slinkyv1beta1.ReasonPodsFailing, "%s", trouble)
	}
	if is.ReadyReplicas < want {
		return status.Working(slinkyv1beta1.ReasonPodsNotReady, "%d of %d pods are ready", is.ReadyReplicas, want)
	}
	return status.Working(slinkyv1beta1.ReasonReconciling, "pods are being replaced: %d of %d are up to date", is.UpdatedReplicas, want)
}
