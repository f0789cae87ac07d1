package worker_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// nodeSet returns a NodeSet with defaults and a fragment of slurmd's container.
func nodeSet(name, slurmd string) *slinkyv1beta1.NodeSet {
	set := &slinkyv1beta1.NodeSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: name, UID: "1-2-3"},
		Spec: slinkyv1beta1.NodeSetSpec{
			ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}, Replicas: new(int32(1)),
			ScalingMode: slinkyv1beta1.ScalingModeStatefulSet,
		},
	}
	set.Spec.Slurmd.Raw = []byte(slurmd)
	return set
}
