package desired

import (
	"encoding/json"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
)

// A pod of another operator gets the labels that this operator finds it by, and keeps those that tell it apart from
// others or that the other operator's Services select by.
func TestPodOfAnotherOperatorGetsLabels(t *testing.T) {
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	set.Spec.ControllerRef.Name = "slurm"
	identity := map[string]string{
		slinkyv1beta1.LabelPodName: "gpu-7", slinkyv1beta1.LabelPodHostname: "node-7", slinkyv1beta1.LabelPodIndex: "7",
		slinkyv1beta1.LabelScalingMode: "StatefulSet",
	}
	operator := map[string]string{
		"app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": "gpu",
		"app.kubernetes.io/managed-by": "slurm-operator", "app.kubernetes.io/part-of": "slurm",
		"app.kubernetes.io/component": "worker", "slinky.slurm.net/controller": "slurm",
		slinkyv1beta1.LabelPodProtect: "true",
	}
	tests := map[string]struct{ has, other map[string]string }{
		"without labels": {nil, nil},
		"with labels of its own": {
			map[string]string{"app.kubernetes.io/component": "x", "app.kubernetes.io/instance": "release", "team": "a"},
			map[string]string{"app.kubernetes.io/component": "x"},
		},
		"with an identity": {
			map[string]string{slinkyv1beta1.LabelPodHostname: "other", slinkyv1beta1.LabelPodIndex: "3"},
			map[string]string{slinkyv1beta1.LabelPodHostname: "other", slinkyv1beta1.LabelPodIndex: "3"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "gpu-7", UID: "u", Labels: test.has}}
			pod.Spec.Hostname = "node-7"
			if worker.IsOwn(pod) {
				t.Error("the pod counts as this operator's")
			}
			var patch struct {
				Metadata struct {
					UID    string
					Labels map[string]string
				}
			}
			if err := json.Unmarshal(PodLabels(set, pod), &patch); err != nil {
				t.Fatal(err)
			}
			want := maps.Clone(identity)
			maps.Copy(want, operator)
			maps.Copy(want, test.other)
			if !maps.Equal(patch.Metadata.Labels, want) || patch.Metadata.UID != "u" {
				t.Errorf("got %v, want %v", patch.Metadata, want)
			}
			pod.Labels = patch.Metadata.Labels
			if !worker.IsOwn(pod) || worker.SlurmName(pod) != want[slinkyv1beta1.LabelPodHostname] {
				t.Errorf("the pod is not this operator's afterwards, or is Slurm node %s", worker.SlurmName(pod))
			}
		})
	}
}
