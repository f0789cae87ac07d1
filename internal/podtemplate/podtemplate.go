// Package podtemplate merges the operator's pod templates with the user's.
//
// The operator builds a complete pod template. The user's fragments are strategic merge patches onto it, as with
// kubectl: lists of containers, volumes, mounts, ports and variables are merged by their keys, and the user's fields
// take precedence, also if they are false or 0. The operator's labels take precedence, because its selectors need them,
// and arguments are added to the operator's.
package podtemplate

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/invalid"
)

// A Part is a user's fragment and the operator's container that it is merged onto.
type Part struct {
	// Container is the name of the container or init container.
	Container string
	Fragment  slinkyv1beta1.ContainerFragment
}

// Merge merges the user's parts and template onto the operator's template. Errors are shown to the user and name the
// field of the spec that cannot be merged.
func Merge(own corev1.PodTemplateSpec, template slinkyv1beta1.PodTemplate, parts ...Part) (corev1.PodTemplateSpec,
	error) {
	merged := own
	merged.Spec = *own.Spec.DeepCopy()
	for _, part := range parts {
		if err := mergeContainer(&merged.Spec, part); err != nil {
			return corev1.PodTemplateSpec{}, err
		}
	}
	if err := mergeSpec(&merged.Spec, template.Spec.Raw); err != nil {
		return corev1.PodTemplateSpec{}, invalid.New("spec.template.spec", "%w", err)
	}
	keepCapabilities(own.Spec.Containers, merged.Spec.Containers)
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

// mergeContainer merges a fragment onto a container, which keeps its name.
func mergeContainer(spec *corev1.PodSpec, part Part) error {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			if containers[i].Name != part.Container {
				continue
			}
			own := containers[i]
			var given arguments
			err := Patch(&containers[i], part.Fragment.Raw)
			if err == nil && len(part.Fragment.Raw) > 0 {
				err = json.Unmarshal(part.Fragment.Raw, &given)
			}
			if err != nil {
				return invalid.New("spec."+part.Container, "%w", err)
			}
			containers[i].Name = part.Container
			given.apply(&own, &containers[i])
		}
	}
	return nil
}

// mergeSpec merges a user's pod template onto a pod.
func mergeSpec(spec *corev1.PodSpec, template []byte) error {
	containers, initContainers, err := templateArguments(template)
	if err != nil {
		return err
	}
	own := spec.DeepCopy()
	if err := Patch(spec, template); err != nil {
		return err
	}
	applyArguments(own.Containers, spec.Containers, containers)
	applyArguments(own.InitContainers, spec.InitContainers, initContainers)
	return nil
}

// Patch applies a fragment to an object as a strategic merge patch.
func Patch[T any](object *T, fragment []byte) error {
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
