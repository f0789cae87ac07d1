// Package reference reads objects that specs reference. A missing object is not an error: the result is nil.
package reference

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// Object reads the object with a name into object. It returns nil if it does not exist or is being deleted.
func Object[T client.Object](ctx context.Context, reader client.Reader, namespace, name string, object T) (found T,
	err error) {
	var none T
	switch err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %T %s: %w", object, name, err)
	case object.GetDeletionTimestamp() != nil:
		return none, nil
	}
	return object, nil
}

// Pods returns the pods with the labels of a custom resource's daemon. A user who may create pods can give them any
// labels, so what the operator does must not depend on them: OwnPods and StatefulSetPods are for that.
func Pods(ctx context.Context, reader client.Reader, daemon naming.Daemon, owner client.Object) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := reader.List(ctx, pods, client.InNamespace(owner.GetNamespace()),
		client.MatchingLabels(naming.Selector(daemon, owner.GetName())))
	return pods.Items, err
}

// OwnPods returns the pods of a daemon that the custom resource itself controls.
func OwnPods(ctx context.Context, reader client.Reader, daemon naming.Daemon,
	owner client.Object) ([]corev1.Pod, error) {
	pods, err := Pods(ctx, reader, daemon, owner)
	return controlledBy(pods, owner), err
}

func controlledBy(pods []corev1.Pod, owner client.Object) []corev1.Pod {
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, owner) })
}

// StatefulSetPods returns the pods of a custom resource's daemon that run in the StatefulSet with a name. Pods of a
// StatefulSet that is nil, because it does not exist or is being deleted, may still run: they have no owner, or its UID
// is no longer known.
func StatefulSetPods(ctx context.Context, reader client.Reader, daemon naming.Daemon, owner client.Object, name string,
	set *appsv1.StatefulSet) ([]corev1.Pod, error) {
	pods, err := Pods(ctx, reader, daemon, owner)
	return ofStatefulSet(pods, name, set), err
}

func ofStatefulSet(pods []corev1.Pod, name string, set *appsv1.StatefulSet) []corev1.Pod {
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool {
		// Only one pod can have a name, and the StatefulSet would delete or adopt a pod with one of its names.
		ordinal, found := strings.CutPrefix(pod.Name, name+"-")
		if _, err := strconv.ParseUint(ordinal, 10, 31); !found || err != nil {
			return true
		}
		if set != nil {
			return !metav1.IsControlledBy(&pod, set)
		}
		owner := metav1.GetControllerOfNoCopy(&pod)
		return owner != nil && (owner.Kind != "StatefulSet" || owner.Name != name)
	})
}

// SecretValue returns one value of a Secret; nil if it does not exist.
func SecretValue(ctx context.Context, reader client.Reader, namespace string,
	key slinkyv1beta1.SecretKeyReference) ([]byte, error) {
	secret, err := Object(ctx, reader, namespace, key.Name, &corev1.Secret{})
	if secret == nil || len(secret.Data[key.Key]) == 0 {
		return nil, err
	}
	return secret.Data[key.Key], nil
}

// FirstSecretValue returns the first of several references that has a value, and that value; nil if none has.
func FirstSecretValue(ctx context.Context, reader client.Reader, namespace string,
	keys ...slinkyv1beta1.SecretKeyReference) (found slinkyv1beta1.SecretKeyReference, value []byte, err error) {
	for _, key := range keys {
		if value, err = SecretValue(ctx, reader, namespace, key); err != nil || value != nil {
			return key, value, err
		}
	}
	return found, nil, nil
}

// ConfigMapValue returns one value of a ConfigMap; empty if it does not exist.
func ConfigMapValue(ctx context.Context, reader client.Reader, namespace string,
	key slinkyv1beta1.ConfigMapKeyReference) (string, error) {
	configMap, err := Object(ctx, reader, namespace, key.Name, &corev1.ConfigMap{})
	if configMap == nil {
		return "", err
	}
	return configMap.Data[key.Key], nil
}

// Missing returns the message that a value referenced by a field of the spec does not exist.
func Missing(field, kind, name, key string) string {
	return fmt.Sprintf("%s %s, which %s names, does not exist or has no value under %s; create it", kind, name, field,
		key)
}
