package desired

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

func TestPinsInStatusAreLimited(t *testing.T) {
	if shown := (Pins{}).Status(); shown != nil {
		t.Errorf("the status without pins is %v", shown)
	}
	pins := Pins{0: "m1", slinkyv1beta1.MaxOrdinalToNode - 1: "m2", slinkyv1beta1.MaxOrdinalToNode: "m3"}
	if diff := cmp.Diff(map[string]string{"0": "m1", "999": "m2"}, pins.Status()); diff != "" {
		t.Error(diff)
	}
}

func TestMissingPins(t *testing.T) {
	pod := func(ordinal int, node string) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{slinkyv1beta1.LabelPodIndex: strconv.Itoa(ordinal)},
			},
			Spec: corev1.PodSpec{NodeName: node},
		}
	}
	deleted := pod(3, "m3")
	deleted.DeletionTimestamp = &metav1.Time{}
	tests := map[string]struct {
		pins Pins
		pods []corev1.Pod
		want map[int]map[string]string
	}{
		"are none if all are stored": {
			Pins{0: "m1"}, []corev1.Pod{pod(0, "m1")}, map[int]map[string]string{},
		},
		"do not move a stored pin": {
			Pins{0: "m1"}, []corev1.Pod{pod(0, "m2")}, map[int]map[string]string{},
		},
		"skip unscheduled and deleted pods": {
			Pins{}, []corev1.Pod{pod(0, ""), deleted}, map[int]map[string]string{},
		},
		"skip pods of DaemonSet mode": {
			Pins{}, []corev1.Pod{{Spec: corev1.PodSpec{NodeName: "m1"}}}, map[int]map[string]string{},
		},
		"include the stored pins of their shard": {
			Pins{0: "m1", 1000: "m2"}, []corev1.Pod{pod(1, "m3")}, map[int]map[string]string{0: {"0": "m1", "1": "m3"}},
		},
		"are grouped by the shard of the ordinal": {
			Pins{}, []corev1.Pod{pod(999, "m1"), pod(1000, "m2")},
			map[int]map[string]string{0: {"999": "m1"}, 1: {"1000": "m2"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.pins.Missing(test.pods)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
