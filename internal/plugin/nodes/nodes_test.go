package nodes_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

func TestNamesAreSortedByNumber(t *testing.T) {
	want := []string{"a", "gpu-1-2", "gpu-1-10", "gpu-2", "gpu-9", "gpu-009", "gpu-10", "gpu-10a", "rack1"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, nodes.CompareNames)
	slices.SortFunc(want[4:6], nodes.CompareNames) // equal numbers are in the order of their text
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPodConditionsStandInForSlurm(t *testing.T) {
	pod := func(message string, states ...string) corev1.Pod {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "gpu-0", Labels: map[string]string{slinkyv1beta1.LabelPodHostname: "gpu-0"},
		}}
		for _, state := range states {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: slinkyv1beta1.PodConditionType(state), Status: corev1.ConditionTrue, Message: message,
			})
		}
		return pod
	}
	for name, test := range map[string]struct {
		pod   corev1.Pod
		state string
		owner string
		down  bool
	}{
		"idle": {pod("", "Idle", "DynamicNorm"), "IDLE", "", false},
		"drained by the operator": {
			pod(slurm.OurReason("update"), "Drain", "Mixed"), "MIXED+DRAIN", nodes.OwnerOperator, false,
		},
		"drained by a user": {pod("fan", "Idle", "Drain"), "IDLE+DRAIN", nodes.OwnerOthers, false},
		"down":              {pod("x", "Down", "NotResponding"), "DOWN+NOT_RESPONDING", nodes.OwnerOthers, true},
		"not registered":    {pod(""), "", "", false},
	} {
		joined := nodes.Join(&nodes.Input{Pods: []corev1.Pod{test.pod}})
		if node := joined[0]; node.State != test.state || node.Owner != test.owner || node.Down != test.down {
			t.Errorf("%s: %+v", name, node)
		}
	}
}

func TestReasonThatOutlivedItsDrainIsNotShown(t *testing.T) {
	joined := nodes.Join(&nodes.Input{Asked: true, Slurm: []slurm.Node{
		{Name: "gpu-0", State: slurm.StateIdle, Reason: slurm.OurReason("update")},
	}})
	if joined[0].Reason != "" || joined[0].Owner != "" {
		t.Errorf("%+v", joined[0])
	}
}
