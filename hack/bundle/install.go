package main

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// certificateDir is where OLM mounts the certificate of a webhook; certificateVolume is the chart's own volume for it.
	certificateDir    = "/tmp/k8s-webhook-server/serving-certs"
	certificateVolume = "certificate"
	// targetNamespaces is the annotation with the namespaces of the OperatorGroup, separated by commas; it is empty if
	// these are all.
	targetNamespaces = "olm.targetNamespaces"
	// namespacesVariable is the environment variable with these namespaces.
	namespacesVariable = "WATCH_NAMESPACE"
)

// deployment returns a Deployment of the chart as OLM installs it: it manages the namespaces of its OperatorGroup, and
// its webhook has the certificate that OLM issues.
func deployment(object *unstructured.Unstructured) (operatorsv1alpha1.StrategyDeploymentSpec, error) {
	found, err := as[appsv1.Deployment](object)
	if err != nil {
		return operatorsv1alpha1.StrategyDeploymentSpec{}, err
	}
	pod := &found.Spec.Template.Spec
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(volume corev1.Volume) bool {
		return volume.Name == certificateVolume
	})
	for i := range pod.Containers {
		container := &pod.Containers[i]
		container.VolumeMounts = slices.DeleteFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool {
			return mount.Name == certificateVolume
		})
		for j, argument := range container.Args {
			switch flag, _, _ := strings.Cut(argument, "="); flag {
			case "--namespaces":
				container.Args[j] = flag + "=$(" + namespacesVariable + ")"
			case "--certificate-directory":
				container.Args[j] = flag + "=" + certificateDir
			}
		}
		container.Env = append(container.Env, corev1.EnvVar{
			Name: namespacesVariable,
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
				FieldPath: "metadata.annotations['" + targetNamespaces + "']",
			}},
		})
	}
	return operatorsv1alpha1.StrategyDeploymentSpec{Name: found.Name, Spec: found.Spec, Label: found.Labels}, nil
}

// webhooks returns the descriptions of the webhooks in a configuration. OLM selects the namespaces of the
// OperatorGroup, and knows no match conditions: the webhook itself accepts an update that does not change the spec.
func webhooks(object *unstructured.Unstructured) ([]operatorsv1alpha1.WebhookDescription, error) {
	// Both types of configurations have these fields.
	configuration, err := as[admissionv1.MutatingWebhookConfiguration](object)
	if err != nil {
		return nil, err
	}
	admission := operatorsv1alpha1.ValidatingAdmissionWebhook
	if object.GetKind() == "MutatingWebhookConfiguration" {
		admission = operatorsv1alpha1.MutatingAdmissionWebhook
	}
	var descriptions []operatorsv1alpha1.WebhookDescription
	for _, webhook := range configuration.Webhooks {
		service := webhook.ClientConfig.Service
		if service == nil || service.Path == nil {
			return nil, fmt.Errorf("the webhook %s has no path of a Service", webhook.Name)
		}
		descriptions = append(descriptions, operatorsv1alpha1.WebhookDescription{
			GenerateName: webhook.Name,
			Type:         admission,
			// The chart gives the Deployment and its Service the same name.
			DeploymentName:          service.Name,
			ContainerPort:           443,
			TargetPort:              new(intstr.FromString("webhook")),
			Rules:                   webhook.Rules,
			FailurePolicy:           webhook.FailurePolicy,
			MatchPolicy:             webhook.MatchPolicy,
			ObjectSelector:          webhook.ObjectSelector,
			SideEffects:             webhook.SideEffects,
			TimeoutSeconds:          webhook.TimeoutSeconds,
			AdmissionReviewVersions: webhook.AdmissionReviewVersions,
			ReinvocationPolicy:      webhook.ReinvocationPolicy,
			WebhookPath:             service.Path,
		})
	}
	return descriptions, nil
}

// as converts an object to its type.
func as[T any](object *unstructured.Unstructured) (T, error) {
	var converted T
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &converted)
	if err != nil {
		err = fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return converted, err
}
