package podtemplate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// annotationTemplate on a pod is the digest of its template.
const annotationTemplate = slinkyv1beta1.GroupName + "/template-hash"

// annotationRestarted is set on a template by kubectl rollout restart.
const annotationRestarted = "kubectl.kubernetes.io/restartedAt"

// Stamp annotates a template with a digest of itself. The digest excludes the image of the init container that installs
// the operator's helper: it changes with every release of the operator, which is no reason to restart a daemon.
func Stamp(template *corev1.PodTemplateSpec, helper string) error {
	hashed := template.DeepCopy()
	for i := range hashed.Spec.InitContainers {
		if hashed.Spec.InitContainers[i].Name == helper {
			hashed.Spec.InitContainers[i].Image = ""
		}
	}
	data, err := json.Marshal(hashed)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[annotationTemplate] = hex.EncodeToString(sum[:8])
	return nil
}

// annotationReports on a pod means that its helper authenticates itself and its clients.
const annotationReports = slinkyv1beta1.GroupName + "/authenticated-reports"

// AuthenticateReports annotates a stamped template: pods that are created from now on have a helper that authenticates
// itself. It comes after the stamp, because it is no reason to replace a pod.
func AuthenticateReports(template *corev1.PodTemplateSpec) {
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[annotationReports] = "true"
}

// AuthenticatesReports reports whether the helper in a pod authenticates itself. Helpers of earlier versions do not.
func AuthenticatesReports(pod *corev1.Pod) bool { return pod.Annotations[annotationReports] == "true" }

// IsOwn reports whether annotations are those of a pod template or pod that this operator made, and not another one.
func IsOwn(annotations map[string]string) bool {
	return annotations[annotationTemplate] != "" || annotations[naming.AnnotationConfiguration] != ""
}

// Outdated reports whether a pod must be replaced because the stamped template of its StatefulSet has changed or a user
// requested a restart. The StatefulSet does not replace pods by itself (OnDelete); a pod that is created for another
// reason has the current template anyway, with the current helper.
func Outdated(pod *corev1.Pod, set *appsv1.StatefulSet) bool {
	if set.Status.ObservedGeneration != set.Generation ||
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] == set.Status.UpdateRevision {
		return false
	}
	return Differs(pod, set)
}

// Differs reports whether a pod was created from another stamped template than its StatefulSet has now, or before a
// user requested a restart. Such a pod is replaced as soon as it is certain that it is not a new one (Outdated).
func Differs(pod *corev1.Pod, set *appsv1.StatefulSet) bool {
	return slices.ContainsFunc([]string{annotationTemplate, annotationRestarted}, func(key string) bool {
		return pod.Annotations[key] != set.Spec.Template.Annotations[key]
	})
}
