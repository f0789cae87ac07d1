package podtemplate

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// Arguments of the user's fragments are added to those of the operator's container, instead of replacing them: a
// fragment with args: [-vvv] makes a daemon verbose, and one with an empty list changes nothing. A fragment with a
// command replaces both.

// arguments are the fields of a fragment of a container that are not merged like all others.
type arguments struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
	Args    []string `json:"args"`
}

// apply sets the command and arguments of a merged container from those that it had before.
func (a arguments) apply(own, merged *corev1.Container) {
	if len(a.Command) > 0 {
		merged.Command, merged.Args = a.Command, a.Args
		return
	}
	merged.Command = own.Command
	merged.Args = append(append([]string(nil), own.Args...), a.Args...)
}

// applyArguments sets the commands and arguments of the operator's containers after a merge with a template.
func applyArguments(own, merged []corev1.Container, fragments []arguments) {
	for i := range merged {
		for j := range own {
			if own[j].Name != merged[i].Name {
				continue
			}
			for _, fragment := range fragments {
				if fragment.Name == own[j].Name {
					fragment.apply(&own[j], &merged[i])
				}
			}
		}
	}
}

// templateArguments returns the arguments in a user's pod template.
func templateArguments(template []byte) (containers, initContainers []arguments, err error) {
	if len(template) == 0 {
		return nil, nil, nil
	}
	var spec struct {
		Containers     []arguments `json:"containers"`
		InitContainers []arguments `json:"initContainers"`
	}
	err = json.Unmarshal(template, &spec)
	return spec.Containers, spec.InitContainers, err
}
