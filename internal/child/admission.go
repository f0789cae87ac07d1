package child

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Admits returns the error with which the API server rejects the first pod of a StatefulSet, for example because of a
// quota; nil if it accepts the pod. The StatefulSet controller reports that only in events. Nothing is created.
func (a *Applier) Admits(ctx context.Context, set *appsv1.StatefulSet) error {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = set.Namespace, set.Name+"-0"
	if set.UID != "" { // policies may refuse pods without an owner
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet", Name: set.Name, UID: set.UID,
			Controller: new(true),
		}}
	}
	if err := a.client.Create(ctx, pod, client.DryRunAll); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating pod %s: %w", pod.Name, err)
	}
	return nil
}

// AdmitsInPlaceOf returns the error with which the API server would reject a pod of a StatefulSet after another pod was
// deleted. A quota still counts that one.
func (a *Applier) AdmitsInPlaceOf(ctx context.Context, set *appsv1.StatefulSet, pod *corev1.Pod) error {
	err := a.Admits(ctx, set)
	class := set.Spec.Template.Spec.PriorityClassName
	sameQuotas := class == "" || class == pod.Spec.PriorityClassName
	if err == nil || sameQuotas && fitsAfter(err.Error(), usage(pod)) {
		return nil
	}
	return fmt.Errorf("pod %s is not replaced, because Kubernetes refuses the next one: %w", pod.Name, err)
}

// overQuota matches the message about an exceeded quota, which gives the amounts of the exceeded resources.
var overQuota = regexp.MustCompile(`exceeded quota: [^,]+, requested: (.*), used: (.*), limited: (.*)$`)

// fitsAfter reports whether what a quota refuses fits into it after something has been released. Amounts that cannot be
// read do not fit.
func fitsAfter(refusal string, released corev1.ResourceList) bool {
	match := overQuota.FindStringSubmatch(refusal)
	if match == nil {
		return false
	}
	requested, used, limited := amounts(match[1]), amounts(match[2]), amounts(match[3])
	for name, limit := range limited {
		is, isKnown := used[name]
		sum, isRequested := requested[name]
		if release := released[name]; is.Cmp(release) >= 0 {
			is.Sub(release)
		}
		sum.Add(is)
		if !isKnown || !isRequested || sum.Cmp(limit) > 0 {
			return false
		}
	}
	return len(limited) > 0
}

// amounts returns the amounts in a list like "cpu=1,memory=2Gi"; nil if one cannot be read.
func amounts(list string) corev1.ResourceList {
	read := corev1.ResourceList{}
	for each := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(each, "=")
		amount, err := resource.ParseQuantity(value)
		if err != nil {
			return nil
		}
		read[corev1.ResourceName(name)] = amount
	}
	return read
}

// usage returns what a pod uses of a quota, by the names that quotas have for it. A pod that has ended uses nothing.
func usage(pod *corev1.Pod) corev1.ResourceList {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	used := corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("1"), "count/pods": resource.MustParse("1"),
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for name, amount := range requests {
		used[name], used["requests."+name] = amount, amount
	}
	for name, amount := range resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}) {
		used["limits."+name] = amount
	}
	return used
}
