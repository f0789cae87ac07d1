package podtemplate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// annotationTemplate on a pod is the digest of the template that it was made from.
const annotationTemplate = slinkyv1beta1.GroupName + "/template-hash"

// annotationRestarted is what kubectl rollout restart puts onto a template.
const annotationRestarted = "kubectl.kubernetes.io/restartedAt"

// Stamp marks a template with a digest of itself. The image of the init container that brings the operator's own program into
// the pod does not count: it changes with every release of the operator, which is no reason to end a daemon.
func Stamp(template *corev1.PodTemplateSpec, helper string) error {
	counts := template.DeepCopy()
	for i := range counts.Spec.InitContainers {
		if counts.Spec.InitContainers[i].Name == helper {
			counts.Spec.InitContainers[i].Image = ""
		}
	}
	data, err := json.Marshal(counts)
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

// Outdated tells whether a pod has to be replaced to be as the stamped template of its StatefulSet, or because somebody wants
// it restarted. The StatefulSet replaces no pod by itself (OnDelete); one that is made for any other reason is made from the
// present template anyway, with the present helper.
func Outdated(pod *corev1.Pod, set *appsv1.StatefulSet) bool {
	if set.Status.ObservedGeneration != set.Generation || pod.Labels[appsv1.ControllerRevisionHashLabelKey] == set.Status.UpdateRevision {
		return false
	}
	return slices.ContainsFunc([]string{annotationTemplate, annotationRestarted}, func(key string) bool {
		return pod.Annotations[key] != set.Spec.Template.Annotations[key]
	})
}
