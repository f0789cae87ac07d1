// Package podtemplate merges what the operator wants of a pod with what the user wants.
//
// The operator builds a complete pod template. The user's fragments are patches onto it, merged as kubectl would merge
// them: lists of containers, volumes, mounts, ports and variables merge by their keys, and what the user sets wins, also
// when it is false or 0. The operator's labels win, because its selectors stand on them.
package podtemplate

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/invalid"
)

// A Part says which of the operator's containers a user's fragment is merged onto.
type Part struct {
	// Container is the name of the container or init container.
	Container string
	Fragment  slinkyv1beta1.ContainerFragment
}

// Merge merges the user's parts and template onto the operator's template. The errors are for the user to read: they say
// which field of the spec cannot be merged.
func Merge(own corev1.PodTemplateSpec, template slinkyv1beta1.PodTemplate, parts ...Part) (corev1.PodTemplateSpec, error) {
	merged := own
	merged.Spec = *own.Spec.DeepCopy()
	for _, part := range parts {
		if err := mergeContainer(&merged.Spec, part); err != nil {
			return corev1.PodTemplateSpec{}, err
		}
	}
	if err := patch(&merged.Spec, template.Spec.Raw); err != nil {
		return corev1.PodTemplateSpec{}, invalid.New("spec.template.spec", "%w", err)
	}
	merged.Labels = make(map[string]string, len(own.Labels)+len(template.Metadata.Labels))
	for key, value := range template.Metadata.Labels {
		merged.Labels[key] = string(value)
	}
	maps.Copy(merged.Labels, own.Labels)
	merged.Annotations = maps.Clone(template.Metadata.Annotations)
	if merged.Annotations == nil && len(own.Annotations) > 0 {
		merged.Annotations = map[string]string{}
	}
	maps.Copy(merged.Annotations, own.Annotations)
	return merged, nil
}

// mergeContainer merges a fragment onto the container of its name, which keeps its name.
func mergeContainer(spec *corev1.PodSpec, part Part) error {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			if containers[i].Name != part.Container {
				continue
			}
			if err := patch(&containers[i], part.Fragment.Raw); err != nil {
				return invalid.New("spec."+part.Container, "%w", err)
			}
			containers[i].Name = part.Container
		}
	}
	return nil
}

// patch merges a fragment onto an object strategically.
func patch[T any](object *T, fragment []byte) error {
	if len(fragment) == 0 {
		return nil
	}
	original, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var kind T
	merged, err := strategicpatch.StrategicMergePatch(original, fragment, kind)
	if err != nil {
		return err
	}
	var result T
	if err := json.Unmarshal(merged, &result); err != nil {
		return err
	}
	*object = result
	return nil
}

// Configuration is a template in the form that server-side apply takes.
func Configuration(template corev1.PodTemplateSpec) (*applycorev1.PodTemplateSpecApplyConfiguration, error) {
	configuration := &applycorev1.PodTemplateSpecApplyConfiguration{}
	return configuration, convert(template, configuration)
}

// convert turns an object into another form of it.
func convert(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}
