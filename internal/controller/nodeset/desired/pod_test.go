package desired

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestStateConditions(t *testing.T) {
	drained := &slurm.Node{
		Name: "gpu-0", State: slurm.StateIdle, Flags: slurm.FlagDrain | slurm.FlagNotResponding, Reason: "bad disk",
	}
	tests := map[string]struct {
		record *slurm.Node
		want   map[corev1.PodConditionType]string
	}{
		"are none without a record": {want: map[corev1.PodConditionType]string{}},
		"have the reason of a drain": {
			record: drained,
			want: map[corev1.PodConditionType]string{
				"SlurmNodeStateIdle": "bad disk", "SlurmNodeStateDrain": "bad disk",
				"SlurmNodeStateNotResponding": "bad disk",
			},
		},
		"have the reason of FAIL": {
			record: &slurm.Node{State: slurm.StateIdle, Flags: slurm.FlagFail, Reason: "XID 79"},
			want:   map[corev1.PodConditionType]string{"SlurmNodeStateIdle": "XID 79", "SlurmNodeStateFail": "XID 79"},
		},
		"omit the reason of an earlier drain": {
			record: &slurm.Node{State: slurm.StateIdle, Reason: "bad disk"},
			want:   map[corev1.PodConditionType]string{"SlurmNodeStateIdle": ""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, stateConditions(test.record)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	for name, test := range map[string]struct {
		load slurm.Load
		want string
	}{
		"is when the last job reaches its time limit":       {slurm.Load{Running: 1, Until: noon}, "2026-03-01T12:00:00Z"},
		"is empty if a job has no time limit":               {slurm.Load{Other: 1, Unlimited: true}, ""},
		"is empty while the time limit of a job is unknown": {slurm.Load{Running: 1}, ""},
		"is empty without jobs":                             {slurm.Load{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := deadline(test.load); got != test.want {
				t.Errorf("the deadline is %q, want %q", got, test.want)
			}
		})
	}
}

func TestPatchesContainOnlyOwnFields(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			UID: "u", ResourceVersion: "7", Labels: map[string]string{"mine": "1", slinkyv1beta1.LabelPodProtect: "true"},
			Annotations: map[string]string{
				slinkyv1beta1.AnnotationPodCordon: "true", slinkyv1beta1.AnnotationPodDeadline: "2026-03-01T11:00:00Z",
			},
		},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: "SlurmNodeStateAllocated", Status: corev1.ConditionTrue},
		}},
	}
	idle := &slurm.Node{State: slurm.StateIdle}
	type object = map[string]any
	equal := func(what string, patch []byte, want any) {
		t.Helper()
		var got any
		if err := json.Unmarshal(patch, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	equal("metadata", PodMetadata(pod, false, slurm.Load{}), object{"metadata": object{
		"uid": "u", "labels": object{slinkyv1beta1.LabelPodProtect: nil}, "annotations": object{
			slinkyv1beta1.AnnotationPodDeadline: nil,
		},
	}})
	marked := object{slinkyv1beta1.AnnotationPodCordon: "true", slinkyv1beta1.AnnotationPodCordonSource: "scale-in"}
	equal("mark", PodMark(pod, true),
		object{"metadata": object{"uid": "u", "resourceVersion": "7", "annotations": marked}})
	equal("removed mark", PodMark(pod, false), object{"metadata": object{
		"uid": "u", "resourceVersion": "7", "annotations": object{
			slinkyv1beta1.AnnotationPodCordon: nil, slinkyv1beta1.AnnotationPodCordonSource: nil,
		},
	}})
	pod.Annotations[slinkyv1beta1.AnnotationPodCordon] = "no"
	equal("removed rest of a mark", PodMark(pod, false), object{"metadata": object{
		"uid": "u", "resourceVersion": "7", "annotations": object{slinkyv1beta1.AnnotationPodCordonSource: nil},
	}})
	equal("status", PodConditions(pod, idle, true, noon),
		object{"metadata": object{"uid": "u"}, "status": object{"conditions": []any{
			object{"type": "SlurmNodeStateAllocated", "$patch": "delete"},
			object{
				"type": "SlurmNodeStateIdle", "status": "True", "message": "", "lastTransitionTime": "2026-03-01T12:00:00Z",
			},
			object{"type": "SlurmNodeRegistered", "status": "True", "lastTransitionTime": "2026-03-01T12:00:00Z"},
		}}})

	pod.Labels, pod.Annotations = nil, nil
	pod.Status.Conditions[1].Type = "SlurmNodeStateIdle"
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: "SlurmNodeRegistered", Status: corev1.ConditionTrue,
	})
	if patch := PodMetadata(pod, false, slurm.Load{}); patch != nil {
		t.Errorf("correct metadata is patched: %s", patch)
	}
	if patch := PodConditions(pod, idle, true, noon); patch != nil {
		t.Errorf("correct conditions are patched: %s", patch)
	}
}

// TestRecordOfEarlierPodIsNoRegistration has the record of an earlier pod of the same name.
func TestRecordOfEarlierPodIsNoRegistration(t *testing.T) {
	patch := PodConditions(&corev1.Pod{}, &slurm.Node{State: slurm.StateIdle}, false, noon)
	if pod := patched(t, &corev1.Pod{}, patch); len(pod.Status.Conditions) != 1 {
		t.Errorf("the conditions are %+v", pod.Status.Conditions)
	}
}

// Every reconcile would repeat a patch that does not converge.
func TestPodConditionsConverge(t *testing.T) {
	idle := &slurm.Node{State: slurm.StateIdle}
	drained := &slurm.Node{State: slurm.StateIdle, Flags: slurm.FlagDrain, Reason: "slurm-operator: update"}
	for name, test := range map[string]struct{ before, after *slurm.Node }{
		"after a drain":     {idle, drained},
		"after an undrain":  {drained, idle},
		"without a record":  {drained, nil},
		"with a new record": {nil, idle},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			if patch := PodConditions(pod, test.before, true, noon); patch != nil {
				pod = patched(t, pod, patch)
			}
			pod = patched(t, pod, PodConditions(pod, test.after, true, noon.Add(time.Minute)))
			if patch := PodConditions(pod, test.after, true, noon.Add(time.Hour)); patch != nil {
				t.Errorf("%+v is patched again: %s", pod.Status.Conditions, patch)
			}
		})
	}
}

// patched applies a patch of the status to a pod, as the API server does.
func patched(t *testing.T, pod *corev1.Pod, patch []byte) *corev1.Pod {
	t.Helper()
	before, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	pod = &corev1.Pod{}
	if err := json.Unmarshal(after, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}
