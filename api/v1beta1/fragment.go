package v1beta1

import (
	"bytes"
	"errors"
)

// Fragment is a part of a Kubernetes object exactly as the user wrote it, as JSON. It is merged onto the operator's own
// object with a strategic merge, for which the difference between a field that is absent and one that is false, zero or
// empty matters; a typed struct would lose it.
type Fragment struct {
	// Raw is the JSON object, empty when the user gave none.
	Raw []byte
}

// IsZero reports whether the user gave no fragment.
func (f Fragment) IsZero() bool {
	return len(f.Raw) == 0
}

// MarshalJSON returns the fragment as written.
func (f Fragment) MarshalJSON() ([]byte, error) {
	if f.IsZero() {
		return []byte("null"), nil
	}
	return f.Raw, nil
}

// UnmarshalJSON keeps a copy of the JSON object.
func (f *Fragment) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	switch {
	case bytes.Equal(data, []byte("null")):
		f.Raw = nil
	case len(data) == 0 || data[0] != '{':
		return errors.New("a fragment must be a JSON object")
	default:
		f.Raw = bytes.Clone(data)
	}
	return nil
}

// ContainerFragment is a part of a core/v1 Container. It is merged onto the container that the operator builds: what is
// set here wins, also when it is false or 0; env, volumeMounts and ports merge by their keys. The container keeps the
// operator's name.
// +kubebuilder:validation:Type=object
type ContainerFragment struct {
	Fragment
}

// PodSpecFragment is a part of a core/v1 PodSpec. It is merged onto the pod that the operator builds: what is set here
// wins, also when it is false or 0; containers, initContainers, volumes and the like merge by name.
// +kubebuilder:validation:Type=object
type PodSpecFragment struct {
	Fragment
}

// ServiceSpecFragment is a part of a core/v1 ServiceSpec. It is merged onto the Service that the operator builds: what
// is set here wins, also when it is false or 0.
// +kubebuilder:validation:Type=object
type ServiceSpecFragment struct {
	Fragment
}
