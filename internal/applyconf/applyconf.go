// Package applyconf converts pod templates and Services to apply configurations, in which the operator writes them.
package applyconf

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// PodTemplate converts a pod template.
func PodTemplate(template corev1.PodTemplateSpec) (*applycorev1.PodTemplateSpecApplyConfiguration, error) {
	configuration := &applycorev1.PodTemplateSpecApplyConfiguration{}
	return configuration, convert(template, configuration)
}

// convert converts between two representations of an object.
func convert(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}
