package loginset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/sshd"
)

func (r *Reconciler) act(ctx context.Context, scope *scope) error {
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: scope.set.Namespace, Name: naming.LoginSet(scope.set.Name)},
	}
	if err := r.Children.TakeOver(ctx, scope.set, deployment, clusterconf.MayTakeOver(scope.controller)); err != nil {
		return err
	}
	if scope.hostKeys == nil {
		made, err := sshd.NewHostKeys(scope.set.Namespace, naming.LoginHostKeys(scope.set.Name))
		if err != nil {
			return err
		}
		if err := r.Children.CreateOnce(ctx, made); err != nil {
			return err
		}
		scope.hostKeys = made
	}
	desired, err := build(scope, r.Images)
	if err != nil {
		return err
	}
	err = errors.Join(
		r.Children.Apply(ctx, scope.set, desired.hosts, &corev1.Service{}),
		r.Children.Apply(ctx, scope.set, desired.service, &corev1.Service{}),
		r.Children.Apply(ctx, scope.set, desired.configuration, &corev1.ConfigMap{}),
		r.Children.Apply(ctx, scope.set, desired.deployment, deployment),
		r.Children.ApplyBudget(ctx, scope.set, naming.LoginSet(scope.set.Name), desired.budget),
	)
	if err != nil {
		return err
	}
	scope.deployment = deployment
	return r.refreshAuthorizedKeys(ctx, scope)
}

// annotationKeys on a pod is the hash of the authorized keys when it was last touched.
const annotationKeys = "loginset." + slinkyv1beta1.GroupName + "/authorized-keys-hash"

// refreshAuthorizedKeys makes the kubelets update the authorized keys in running pods, by touching the pods. It waits
// until the operator's cache has the change: by then the kubelets have seen it too.
func (r *Reconciler) refreshAuthorizedKeys(ctx context.Context, scope *scope) error {
	if scope.authorizedKeys != scope.set.Spec.RootSSHAuthorizedKeys {
		return nil
	}
	for i := range scope.pods {
		pod := &scope.pods[i]
		if pod.Status.Phase != corev1.PodRunning || hasKeys(scope, pod) {
			continue
		}
		if err := r.Children.Touch(ctx, pod, annotationKeys, keysHash(scope.set)); err != nil {
			return err
		}
	}
	return nil
}

// hasKeys reports whether a pod was touched for the current authorized keys.
func hasKeys(scope *scope, pod *corev1.Pod) bool {
	return pod.Annotations[annotationKeys] == keysHash(scope.set)
}

func keysHash(set *slinkyv1beta1.LoginSet) string {
	sum := sha256.Sum256([]byte(set.Spec.RootSSHAuthorizedKeys))
	return hex.EncodeToString(sum[:8])
}
