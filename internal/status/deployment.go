package status

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/podfailure"
)

// Deployment returns the verdict for a Deployment with the wanted number of pods; whenReady is the verdict if all are
// ready.
func Deployment(deployment *appsv1.Deployment, pods []corev1.Pod, wanted int32, whenReady Verdict) Verdict {
	is := deployment.Status
	if is.ObservedGeneration < deployment.Generation {
		return Progressing(slinkyv1beta1.ReasonReconciling, "pods are being created")
	}
	if is.ReadyReplicas == wanted && is.UpdatedReplicas == wanted && is.Replicas == wanted {
		return whenReady
	}
	for _, condition := range is.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return Degraded(slinkyv1beta1.ReasonPodsFailing, "Kubernetes does not create a pod: %s", condition.Message)
		}
	}
	if trouble := podfailure.Describe(pods); trouble != "" {
		return Degraded(slinkyv1beta1.ReasonPodsFailing, "%s", trouble)
	}
	if is.ReadyReplicas < wanted {
		return Progressing(slinkyv1beta1.ReasonPodsNotReady, "%d of %d pods are ready", is.ReadyReplicas, wanted)
	}
	return Progressing(slinkyv1beta1.ReasonReconciling, "pods are being replaced: %d of %d are up to date",
		is.UpdatedReplicas, wanted)
}
