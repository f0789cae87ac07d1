package nodeset

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestExpectations(t *testing.T) {
	pod := func(uid types.UID, terminating bool) corev1.Pod {
		cached := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		if terminating {
			cached.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		return cached
	}
	tests := map[string]struct {
		expect func(*expectations)
		pods   []corev1.Pod
		after  time.Duration
		open   bool
	}{
		"are none at first": {func(*expectations) {}, nil, 0, false},
		"wait for a created pod": {func(e *expectations) { e.expectCreated("s", "a", noon) }, nil, 0,
			true},
		"are met when it is in the cache": {func(e *expectations) { e.expectCreated("s", "a", noon) },
			[]corev1.Pod{pod("a", false)}, 0, false},
		"wait for all created pods": {
			func(e *expectations) { e.expectCreated("s", "a", noon); e.expectCreated("s", "b", noon) },
			[]corev1.Pod{pod("a", false)}, 0, true},
		"wait for a deleted pod": {func(e *expectations) { e.expectDeleted("s", "a", noon) },
			[]corev1.Pod{pod("a", false)}, 0, true},
		"are met when it is terminating": {func(e *expectations) { e.expectDeleted("s", "a", noon) },
			[]corev1.Pod{pod("a", true)}, 0, false},
		"are met when it is removed": {func(e *expectations) { e.expectDeleted("s", "a", noon) }, nil, 0,
			false},
		"are met by a pod that was created and deleted": {
			func(e *expectations) { e.expectCreated("s", "a", noon); e.expectDeleted("s", "a", noon) }, nil, 0, false},
		"expire": {func(e *expectations) { e.expectCreated("s", "a", noon) }, nil,
			expectationTimeout, false},
		"do not wait for pods of another NodeSet": {func(e *expectations) { e.expectCreated("other", "a", noon) }, nil,
			0, false},
		"are dropped with their NodeSet": {
			func(e *expectations) { e.expectCreated("s", "a", noon); e.forget("s") }, nil, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var e expectations
			test.expect(&e)
			if until := e.open("s", test.pods, noon.Add(test.after)); until.IsZero() == test.open {
				t.Errorf("waits until %s, want open: %t", until, test.open)
			}
		})
	}
}

func TestPodIsStaleUntilCacheCatchesUp(t *testing.T) {
	pod := func(version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod", ResourceVersion: version}}
	}
	var expectations expectations
	if expectations.stale("set", pod("9")) {
		t.Error("a pod without a write is stale")
	}
	expectations.expectWritten("set", pod("12"))
	now := time.Unix(1000, 0)
	for version, stale := range map[string]bool{"9": true, "11": true, "12": false, "13": false, "100": false,
		"": false} {
		if expectations.stale("set", pod(version)) != stale {
			t.Errorf("version %q: stale is %t, want %t", version, !stale, stale)
		}
	}
	if until := expectations.open("set", []corev1.Pod{*pod("11")}, now); !until.IsZero() {
		t.Error("the whole NodeSet waits for a write to one pod")
	}
	if !expectations.stale("set", pod("11")) {
		t.Error("a write is dropped before it is in the cache")
	}
	expectations.open("set", []corev1.Pod{*pod("12")}, now)
	if expectations.stale("set", pod("11")) || len(expectations.sets) > 0 {
		t.Error("a write is kept although it is in the cache")
	}
	expectations.expectWritten("set", pod("20"))
	expectations.open("set", nil, now)
	if len(expectations.sets) > 0 {
		t.Error("a write to a removed pod is kept")
	}
}

// A pod that is stale may have lost its protection with the last write, and cannot be protected before its event.
func TestActionsOnStalePodsWait(t *testing.T) {
	stale := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "gpu-0", UID: "a", ResourceVersion: "10"}}
	current := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", UID: "b", ResourceVersion: "10"}}
	scope := &scope{
		set:    &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{UID: "set"}},
		byName: map[string]*corev1.Pod{stale.Name: stale, current.Name: current},
	}
	r := &Reconciler{}
	written := stale.DeepCopy()
	written.ResourceVersion = "11"
	r.expectations.expectWritten("set", written)
	next := plan.Plan{}
	for _, name := range []string{"gpu-0", "gpu-1", "gpu-2"} { // the last has no pod
		next.Actions = append(next.Actions, plan.Action{Kind: plan.Undrain, Pod: &plan.Pod{Name: name}, SlurmNode: name})
	}
	if nodes := nodesOf(r.onCurrent(scope, next.Of(plan.Undrain))); !slices.Equal(nodes, []string{"gpu-1", "gpu-2"}) {
		t.Errorf("the drains of %v are lifted", nodes)
	}
	next.Actions = next.Actions[:1]
	if err := r.undrain(t.Context(), scope, &next, &outcome{}); err != nil { // there is no session to ask
		t.Error(err)
	}
}

func TestDescriptionsAreNotRepeatedBeforeTheMirrorShowsThem(t *testing.T) {
	var e expectations
	if !e.showsDescriptions("s", noon) {
		t.Error("waits although nothing was described")
	}
	e.expectDescribed("s", noon)
	e.expectDescribed("s", noon.Add(-time.Second)) // acknowledged in parallel
	for read, shows := range map[time.Time]bool{noon.Add(-time.Second): false, noon: false, noon.Add(1): true} {
		if got := e.showsDescriptions("s", read); got != shows {
			t.Errorf("nodes that were read at %s show them: %t, want %t", read, got, shows)
		}
	}
	if !e.showsDescriptions("other", noon) {
		t.Error("waits for the nodes of another NodeSet")
	}
	if e.forget("s"); !e.showsDescriptions("s", noon) {
		t.Error("waits after the NodeSet was forgotten")
	}
}
