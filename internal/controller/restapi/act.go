package restapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

func (r *Reconciler) act(ctx context.Context, scope *scope, plan plan) error {
	if plan.children == nil {
		return nil
	}
	owner, children := scope.restAPI, plan.children
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: naming.RestAPI(owner.Name)},
	}
	if err := r.Children.TakeOver(ctx, owner, deployment, clusterconf.MayTakeOver(scope.controller)); err != nil {
		return err
	}
	if err := r.Children.Apply(ctx, owner, children.configMap, &corev1.ConfigMap{}); err != nil {
		return err
	}
	if err := r.Children.Apply(ctx, owner, children.trust, &corev1.ConfigMap{}); err != nil {
		return err
	}
	if children.certificate != nil {
		if err := r.Children.Apply(ctx, owner, children.certificate, &corev1.Secret{}); err != nil {
			return err
		}
	}
	if err := r.Children.Apply(ctx, owner, children.service, &corev1.Service{}); err != nil {
		return err
	}
	if err := r.Children.Apply(ctx, owner, children.deployment, deployment); err != nil {
		return err
	}
	scope.deployment = deployment
	if err := r.Children.ApplyBudget(ctx, owner, naming.RestAPI(owner.Name), children.budget); err != nil {
		return err
	}
	return r.refreshCertificate(ctx, scope, plan)
}

// annotationCertificate on a pod is the hash of the certificate when the pod was last touched.
const annotationCertificate = "restapi." + slinkyv1beta1.GroupName + "/certificate-hash"

// refreshCertificate makes the kubelets update the certificate in running pods at once instead of within a minute and a
// half, by touching the pods. It waits until the operator's cache has the change: by then the kubelets have seen it
// too.
func (r *Reconciler) refreshCertificate(ctx context.Context, scope *scope, plan plan) error {
	if certificateHash(scope.certificate) != plan.certificateHash {
		return nil
	}
	for i := range scope.pods {
		pod := &scope.pods[i]
		if pod.Status.Phase != corev1.PodRunning || pod.Annotations[annotationCertificate] == plan.certificateHash {
			continue
		}
		if err := r.Children.Touch(ctx, pod, annotationCertificate, plan.certificateHash); err != nil {
			return err
		}
	}
	return nil
}

// certificateHash returns the hash of the certificate in a Secret, which may be nil.
func certificateHash(secret *corev1.Secret) string {
	if secret == nil {
		return ""
	}
	sum := sha256.Sum256(secret.Data[corev1.TLSCertKey])
	return hex.EncodeToString(sum[:8])
}
