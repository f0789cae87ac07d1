package loginset

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

// judge summarizes the state of the LoginSet from its Deployment and its pods.
func judge(scope *scope, failure error) status.Verdict {
	if failure != nil {
		return status.Progressing(slinkyv1beta1.ReasonReconcileError, "%v", failure)
	}
	set, wanted := scope.set, *scope.set.Spec.Replicas
	ready := status.Ready("users log in through port %d of the Service %s", set.Spec.Service.Port,
		naming.LoginSet(set.Name))
	if wanted == 0 {
		ready = status.Ready("the LoginSet is scaled to zero, so users cannot log in")
	}
	verdict := status.Deployment(scope.deployment, scope.pods, wanted, ready)
	if pod, pending := lacksKeys(scope); verdict.Ready() && pending {
		return status.Progressing(slinkyv1beta1.ReasonReconciling,
			"the authorized keys are being updated in running pods%s", pod)
	}
	return verdict
}

// lacksKeys reports whether running pods still have former authorized keys, and names one if it is known which.
func lacksKeys(scope *scope) (pod string, pending bool) {
	if scope.authorizedKeys != scope.set.Spec.RootSSHAuthorizedKeys {
		return "", true // the ConfigMap that the pods mount has just changed
	}
	for i := range scope.pods {
		if pod := &scope.pods[i]; pod.Status.Phase == corev1.PodRunning && !hasKeys(scope, pod) {
			return ", such as " + pod.Name, true
		}
	}
	return "", false
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
