package config

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// A Check is the answer to what a change would do.
type Check struct {
	Controller string `json:"controller"`
	// Objects are the objects of the change.
	Objects []string `json:"objects"`
	// Refusals are what the API server and the webhook refuse, and Problems what the operator would.
	Refusals []Problem `json:"refusals,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
	Warnings []Problem `json:"warnings,omitempty"`
	// Lines are the lines of slurm.conf that would change.
	Lines []string `json:"lines,omitempty"`
	// Waits are the changes that are not made at once, because they would cost jobs; nil if there are none.
	Waits *Waits `json:"waits,omitempty"`
	// Checked and NotChecked say what the answer is worth.
	Checked    []string `json:"checked"`
	NotChecked []string `json:"notChecked"`
	Notes      []string `json:"notes,omitempty"`
}

// Accepted reports whether nothing was found that keeps the change from being applied.
func (c *Check) Accepted() bool { return len(c.Refusals)+len(c.Problems) == 0 }

// With returns the input with objects of a change in the place of those of the same name. It returns an error for
// another Controller.
func (in *Input) With(objects []any) (*Input, error) {
	changed := *in
	changed.NodeSets = slices.Clone(in.NodeSets)
	changed.ConfigMaps = make(map[string]*corev1.ConfigMap, len(in.ConfigMaps))
	maps.Copy(changed.ConfigMaps, in.ConfigMaps)
	for _, object := range objects {
		switch object := object.(type) {
		case *slinkyv1beta1.Controller:
			if object.Name != in.Controller.Name {
				return nil, fmt.Errorf("the file has the Controller %s, and %s is checked; choose it with --controller",
					object.Name, in.Controller.Name)
			}
			object.Status = in.Controller.Status
			keepAnnotations(object, in.Controller)
			changed.Controller = object
		case *slinkyv1beta1.Accounting:
			if in.Accounting != nil && object.Name == in.Accounting.Name {
				changed.Accounting = object
			}
		case *slinkyv1beta1.NodeSet:
			if object.Spec.ControllerRef.Name != in.Controller.Name {
				continue
			}
			index := slices.IndexFunc(changed.NodeSets, func(set slinkyv1beta1.NodeSet) bool { return set.Name == object.Name })
			if index < 0 {
				changed.NodeSets = append(changed.NodeSets, *object)
				continue
			}
			object.Status, object.CreationTimestamp = in.NodeSets[index].Status, in.NodeSets[index].CreationTimestamp
			keepAnnotations(object, &in.NodeSets[index])
			changed.NodeSets[index] = *object
		case *corev1.ConfigMap:
			changed.ConfigMaps[object.Name] = object
		}
	}
	return &changed, nil
}

// keepAnnotations adds the annotations that an object has and a change of it does not mention.
func keepAnnotations(changed, object metav1.Object) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, changed.GetAnnotations())
	changed.SetAnnotations(annotations)
}

// Effect adds what a change does to slurm.conf, and what the operator would refuse that it does not refuse now.
func (c *Check) Effect(before, after *Input) {
	was, known := before.Build()
	becomes, problems := after.Build()
	for _, problem := range problems {
		if slices.Contains(known, problem) {
			problem.Message += " (as without the change)"
			c.Warnings = append(c.Warnings, problem)
			continue
		}
		c.Problems = append(c.Problems, problem)
	}
	c.Lines = Lines(was.Render(), becomes.Render())
	if c.Accepted() {
		c.Waits = WaitsOf(before, after)
	}
	c.Checked = append(c.Checked,
		"the operator's builder of slurm.conf: syntax, keys that the operator owns, names, files and releases")
}
