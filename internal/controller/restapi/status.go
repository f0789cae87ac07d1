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
		verdict = status.Progressing(slinkyv1beta1.ReasonReconcileError, "%v", failure)
	case plan.children != nil:
		verdict = judge(restAPI, scope.deployment, scope.pods)
		if pod, pending := lacksCertificate(scope, plan); verdict.Ready() && pending {
			verdict = status.Progressing(slinkyv1beta1.ReasonReconciling,
				"the certificate is being updated in running pods%s", pod)
		}
	}
	conditions := status.NewConditions(restAPI.Generation, restAPI.Status.Conditions, metav1.NewTime(scope.now))
	conditions.Summarize(verdict)
	var exist, ready int32
	if scope.deployment != nil {
		exist, ready = scope.deployment.Status.Replicas, scope.deployment.Status.ReadyReplicas
	}
	conditions.Available(ready > 0, "%d of %d pods are ready", ready, replicas(restAPI))
	newStatus := applyv1beta1.RestApiStatus().WithObservedGeneration(restAPI.Generation).
		WithSelector(labels.SelectorFromSet(naming.Selector(naming.Slurmrestd, restAPI.Name)).String()).
		WithReplicas(exist).WithReady(fmt.Sprintf("%d/%d", ready, replicas(restAPI)))
	newStatus.Conditions = conditions.Configuration()
	if !plan.certificateExpires.IsZero() {
		newStatus.WithCertificateExpiresAt(metav1.NewTime(plan.certificateExpires))
	}
	return r.Status.Write(ctx, restAPI, conditions, newStatus)
}

// judge summarizes the state of slurmrestd from its Deployment and its pods.
func judge(restAPI *slinkyv1beta1.RestApi, deployment *appsv1.Deployment, pods []corev1.Pod) status.Verdict {
	ready := status.Ready("slurmrestd answers at https://%s:%d", naming.RestAPIHost(restAPI), restAPI.Spec.Service.Port)
	switch {
	case replicas(restAPI) == 0:
		ready = status.Ready("slurmrestd is scaled to zero, so it does not answer")
	case restAPI.Spec.TLS.PlainHTTP == slinkyv1beta1.PlainHTTPAllowed:
		ready.Message += "; plain HTTP is allowed too, and its tokens can be read on the network: set spec.tls.plainHTTP " +
			"to Refused when no client needs it"
	}
	return status.Deployment(deployment, pods, replicas(restAPI), ready)
}

// lacksCertificate reports whether running pods still have a former certificate, and names one if it is known which. A
// pod that was never touched read the current one when it started.
func lacksCertificate(scope *scope, plan plan) (pod string, pending bool) {
	if certificateHash(scope.certificate) != plan.certificateHash {
		return "", true // the Secret that the pods mount has just changed
	}
	for i := range scope.pods {
		pod := &scope.pods[i]
		if touched := pod.Annotations[annotationCertificate]; pod.Status.Phase == corev1.PodRunning && touched != "" &&
			touched != plan.certificateHash {
			return ", such as " + pod.Name, true
		}
	}
	return "", false
}
