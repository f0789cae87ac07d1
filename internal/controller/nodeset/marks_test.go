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
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestMarks(t *testing.T) {
	drained := &slurm.Node{Name: "gpu-0", State: slurm.StateIdle, Flags: slurm.FlagDrain | slurm.FlagNotResponding, Reason: "bad disk"}
	tests := map[string]struct {
		record *slurm.Node
		want   marks
	}{
		"are none without a record": {want: marks{states: map[corev1.PodConditionType]string{}}},
		"say why a node is drained": {
			record: drained,
			want: marks{registered: true, states: map[corev1.PodConditionType]string{
				"SlurmNodeStateIdle": "bad disk", "SlurmNodeStateDrain": "bad disk", "SlurmNodeStateNotResponding": "bad disk",
			}},
		},
		"say why a node is expected to fail": {
			record: &slurm.Node{State: slurm.StateIdle, Flags: slurm.FlagFail, Reason: "XID 79"},
			want: marks{registered: true, states: map[corev1.PodConditionType]string{
				"SlurmNodeStateIdle": "XID 79", "SlurmNodeStateFail": "XID 79",
			}},
		},
		"leave out what is left of an old reason": {
			record: &slurm.Node{State: slurm.StateIdle, Reason: "bad disk"},
			want:   marks{registered: true, states: map[corev1.PodConditionType]string{"SlurmNodeStateIdle": ""}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, marksOf(test.record), cmp.AllowUnexported(marks{})); diff != "" {
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
		"is when the last job ends at the latest":     {slurm.Load{Running: 1, Until: noon}, "2026-03-01T12:00:00Z"},
		"is open with a job without a limit":          {slurm.Load{Other: 1, Unlimited: true}, ""},
		"is open while the end of a job is not known": {slurm.Load{Running: 1}, ""},
		"is none without jobs":                        {slurm.Load{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Hostname: "gpu-0"}}
			scope := &scope{snapshot: plan.Snapshot{Slurm: &slurm.Snapshot{Queue: slurm.Queue{Loads: map[string]slurm.Load{"gpu-0": test.load}}}}}
			if got := deadline(scope, pod); got != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
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
	idle := marks{registered: true, states: map[corev1.PodConditionType]string{"SlurmNodeStateIdle": ""}}
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
	equal("metadata", metadataPatch(pod, false, ""), object{"metadata": object{
		"uid": "u", "labels": object{slinkyv1beta1.LabelPodProtect: nil}, "annotations": object{slinkyv1beta1.AnnotationPodDeadline: nil},
	}})
	equal("status", idle.statusPatch(pod, noon), object{"metadata": object{"uid": "u"}, "status": object{"conditions": []any{
		object{"type": "SlurmNodeStateAllocated", "$patch": "delete"},
		object{"type": "SlurmNodeStateIdle", "status": "True", "message": "", "lastTransitionTime": "2026-03-01T12:00:00Z"},
		object{"type": "SlurmNodeRegistered", "status": "True", "lastTransitionTime": "2026-03-01T12:00:00Z"},
	}}})

	pod.Labels, pod.Annotations = nil, nil
	pod.Status.Conditions[1].Type = "SlurmNodeStateIdle"
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "SlurmNodeRegistered", Status: corev1.ConditionTrue})
	if patch := metadataPatch(pod, false, ""); patch != nil {
		t.Errorf("metadata that is right is patched: %s", patch)
	}
	if patch := idle.statusPatch(pod, noon); patch != nil {
		t.Errorf("conditions that are right are patched: %s", patch)
	}
}

// What one patch does not set right, the next reconcile patches again, and every one after it.
func TestOnePatchIsEnough(t *testing.T) {
	drained := marksOf(&slurm.Node{State: slurm.StateIdle, Flags: slurm.FlagDrain, Reason: "slurm-operator: update"})
	tests := map[string]struct{ before, after marks }{
		"to drain":         {marksOf(&slurm.Node{State: slurm.StateIdle}), drained},
		"to lift a drain":  {drained, marksOf(&slurm.Node{State: slurm.StateIdle})},
		"to forget a node": {drained, marksOf(nil)},
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
