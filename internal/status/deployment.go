package status

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/podfailure"
)

// Deployment returns the verdict for a Deployment with the wanted number of pods; whenReady is the verdict if all are
// ready and no other pod of the Deployment still runs.
func Deployment(deployment *appsv1.Deployment, pods []corev1.Pod, wanted int32, whenReady Verdict) Verdict {
	is := deployment.Status
	if is.ObservedGeneration < deployment.Generation {
		return Progressing(slinkyv1beta1.ReasonReconciling, "pods are being created")
	}
	if is.ReadyReplicas == wanted && is.UpdatedReplicas == wanted && is.Replicas == wanted {
		return replaced(deployment, pods, wanted, whenReady)
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

// replaced returns the verdict for a Deployment whose status is complete. That status does not count pods that are
// being deleted, and it may be newer than the list of the pods.
func replaced(deployment *appsv1.Deployment, pods []corev1.Pod, wanted int32, whenReady Verdict) Verdict {
	var running int32
	var terminating []string
	for i := range pods {
		switch pod := &pods[i]; {
		case !runs(pod, deployment):
		case pod.DeletionTimestamp != nil:
			terminating = append(terminating, pod.Name)
		default:
			running++
		}
	}
	switch {
	case len(terminating) > 0:
		slices.Sort(terminating) // the message must not depend on the order of the pods
		return Progressing(slinkyv1beta1.ReasonReconciling,
			"%d of %d pods are up to date; %d old ones have not terminated yet, such as %s", wanted, wanted,
			len(terminating), terminating[0])
	case running > wanted:
		return Progressing(slinkyv1beta1.ReasonReconciling, "%d of %d pods are up to date; old pods are being deleted",
			wanted, wanted)
	}
	return whenReady
}

// runs reports whether a pod belongs to a ReplicaSet of a Deployment, and its containers may run.
func runs(pod *corev1.Pod, deployment *appsv1.Deployment) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == "ReplicaSet" && strings.HasPrefix(owner.Name, deployment.Name+"-") &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}
