package v1beta1

import (
	"bytes"
	"errors"
)

// Fragment is a partial Kubernetes object as JSON, exactly as the user wrote it. It is applied to the operator's own
// object with a strategic merge, which distinguishes an absent field from one that is false, zero or empty; a typed
// struct would lose that difference.
type Fragment struct {
	// Raw is the JSON object; empty if the user set none.
	Raw []byte
}

// IsZero reports whether the user set no fragment.
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

// ContainerFragment is a partial core/v1 Container. It is merged onto the container that the operator builds: fields
// set here take precedence, also if they are false or 0; env, volumeMounts and ports are merged by their keys. The
// container keeps the operator's name.
// +kubebuilder:validation:Type=object
type ContainerFragment struct {
	Fragment
}

// PodSpecFragment is a partial core/v1 PodSpec. It is merged onto the pod that the operator builds: fields set here
// take precedence, also if they are false or 0; containers, initContainers, volumes and similar lists are merged by
// name.
// +kubebuilder:validation:Type=object
type PodSpecFragment struct {
	Fragment
}

// ServiceSpecFragment is a partial core/v1 ServiceSpec. It is merged onto the Service that the operator builds: fields
// set here take precedence, also if they are false or 0.
// +kubebuilder:validation:Type=object
type ServiceSpecFragment struct {
	Fragment
}
