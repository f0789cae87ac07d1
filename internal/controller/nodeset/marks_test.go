package nodeset

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

func TestMarks(t *testing.T) {
	drained := &slurm.Node{Name: "gpu-0", State: slurm.StateIdle, Flags: slurm.FlagDrain | slurm.FlagNotResponding, Reason: "bad disk"}
	tests := map[string]struct {
		record *slurm.Node
		load   slurm.Load
		want   marks
	}{
		"are none without a record": {want: marks{states: map[corev1.PodConditionType]string{}}},
		"say why a node is drained": {
			record: drained,
			want: marks{states: map[corev1.PodConditionType]string{
				"SlurmNodeStateIdle": "bad disk", "SlurmNodeStateDrain": "bad disk", "SlurmNodeStateNotResponding": "bad disk",
			}},
		},
		"leave out what is left of an old reason": {
			record: &slurm.Node{State: slurm.StateIdle, Reason: "bad disk"},
			want:   marks{states: map[corev1.PodConditionType]string{"SlurmNodeStateIdle": ""}},
		},
		"protect a pod with jobs, and say until when": {
			record: &slurm.Node{State: slurm.StateMixed}, load: slurm.Load{Running: 1, Until: noon},
			want: marks{protect: true, deadline: "2026-03-01T12:00:00Z", states: map[corev1.PodConditionType]string{"SlurmNodeStateMixed": ""}},
		},
		"know no deadline of a job without a limit": {
			record: &slurm.Node{State: slurm.StateAllocated}, load: slurm.Load{Other: 1, Unlimited: true},
			want: marks{protect: true, states: map[corev1.PodConditionType]string{"SlurmNodeStateAllocated": ""}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, marksOf(test.record, test.load), cmp.AllowUnexported(marks{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPatchesNameOnlyWhatIsOurs(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			UID: "u", Labels: map[string]string{"mine": "1", slinkyv1beta1.LabelPodProtect: "true"},
			Annotations: map[string]string{slinkyv1beta1.AnnotationPodCordon: "true", slinkyv1beta1.AnnotationPodDeadline: "2026-03-01T11:00:00Z"},
		},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: "SlurmNodeStateAllocated", Status: corev1.ConditionTrue},
		}},
	}
	idle := marks{states: map[corev1.PodConditionType]string{"SlurmNodeStateIdle": ""}}
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
	equal("metadata", idle.metadataPatch(pod), object{"metadata": object{
		"uid": "u", "labels": object{slinkyv1beta1.LabelPodProtect: nil}, "annotations": object{slinkyv1beta1.AnnotationPodDeadline: nil},
	}})
	equal("status", idle.statusPatch(pod, noon), object{"metadata": object{"uid": "u"}, "status": object{"conditions": []any{
		object{"type": "SlurmNodeStateAllocated", "$patch": "delete"},
		object{"type": "SlurmNodeStateIdle", "status": "True", "message": "", "lastTransitionTime": "2026-03-01T12:00:00Z"},
	}}})

	pod.Labels, pod.Annotations = nil, nil
	pod.Status.Conditions[1].Type = "SlurmNodeStateIdle"
	if patch := idle.metadataPatch(pod); patch != nil {
		t.Errorf("metadata that is right is patched: %s", patch)
	}
	if patch := idle.statusPatch(pod, noon); patch != nil {
		t.Errorf("conditions that are right are patched: %s", patch)
	}
}

// What one patch does not set right, the next reconcile patches again, and every one after it.
func TestOnePatchIsEnough(t *testing.T) {
	drained := marksOf(&slurm.Node{State: slurm.StateIdle, Flags: slurm.FlagDrain, Reason: "slurm-operator: update"}, slurm.Load{})
	tests := map[string]struct{ before, after marks }{
		"to drain":         {marksOf(&slurm.Node{State: slurm.StateIdle}, slurm.Load{}), drained},
		"to lift a drain":  {drained, marksOf(&slurm.Node{State: slurm.StateIdle}, slurm.Load{})},
		"to forget a node": {drained, marksOf(nil, slurm.Load{})},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := patched(t, &corev1.Pod{}, test.before.statusPatch(&corev1.Pod{}, noon))
			pod = patched(t, pod, test.after.statusPatch(pod, noon.Add(time.Minute)))
			if patch := test.after.statusPatch(pod, noon.Add(time.Hour)); patch != nil {
				t.Errorf("%+v is patched again: %s", pod.Status.Conditions, patch)
			}
		})
	}
}

// patched is a pod after a patch of its status, as the API server makes it.
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

func TestDescribe(t *testing.T) {
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu", UID: "u"}}
	set.Spec.NodeLabels = &slinkyv1beta1.NodeLabelRules{Features: []slinkyv1beta1.FeatureRule{{Label: "zone", Feature: "zone"}, {Label: "missing", Feature: "x"}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "gpu-0"}, Spec: corev1.PodSpec{NodeName: "m1"}}
	machine := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "m1", Labels: map[string]string{"zone": "eu1"}, Annotations: map[string]string{slinkyv1beta1.AnnotationFeatures: "rack7, k8s/nvlink,bad one"},
	}}
	comment := slurm.Owner{Namespace: "hpc", PodName: "gpu-0", Node: "m1", NodeSetName: "gpu", NodeSetUID: "u"}.Comment()
	features := []string{"gpu", "k8s/nvlink", "k8s/rack7", "k8s/zone-eu1"}
	before := slurm.Owner{Namespace: "hpc", PodName: "gpu-0", Node: "m9", NodeSetName: "gpu", NodeSetUID: "u"}.Comment()
	tests := map[string]struct {
		record slurm.Node
		want   slurm.NodeUpdate
	}{
		"tells a new node everything":         {slurm.Node{Features: []string{"gpu"}}, slurm.NodeUpdate{Comment: &comment, Features: &features}},
		"tells nothing that is known":         {slurm.Node{Comment: comment, Features: features}, slurm.NodeUpdate{}},
		"follows a pod to another machine":    {slurm.Node{Comment: before, Features: features}, slurm.NodeUpdate{Comment: &comment}},
		"leaves a person's comment alone":     {slurm.Node{Comment: "do not touch", Features: features}, slurm.NodeUpdate{}},
		"takes away features that have gone":  {slurm.Node{Comment: comment, Features: append([]string{"gpu", "k8s/old"}, features[1:]...)}, slurm.NodeUpdate{Features: &features}},
		"keeps features that are not its own": {slurm.Node{Comment: comment, Features: features[:1]}, slurm.NodeUpdate{Features: &features}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, describe(set, pod, machine, &test.record)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
