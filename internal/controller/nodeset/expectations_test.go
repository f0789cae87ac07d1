package nodeset

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestExpectations(t *testing.T) {
	pod := func(uid types.UID, leaving bool) corev1.Pod {
		made := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		if leaving {
			made.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		return made
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
		"are met when it shows": {func(e *expectations) { e.expectCreated("s", "a", noon) },
			[]corev1.Pod{pod("a", false)}, 0, false},
		"wait for all of them": {
			func(e *expectations) { e.expectCreated("s", "a", noon); e.expectCreated("s", "b", noon) },
			[]corev1.Pod{pod("a", false)}, 0, true},
		"wait until a deleted pod goes": {func(e *expectations) { e.expectDeleted("s", "a", noon) },
			[]corev1.Pod{pod("a", false)}, 0, true},
		"are met when it is going": {func(e *expectations) { e.expectDeleted("s", "a", noon) },
			[]corev1.Pod{pod("a", true)}, 0, false},
		"are met when it is gone": {func(e *expectations) { e.expectDeleted("s", "a", noon) }, nil, 0,
			false},
		"are met by a pod that came and went": {
			func(e *expectations) { e.expectCreated("s", "a", noon); e.expectDeleted("s", "a", noon) }, nil, 0, false},
		"do not wait for ever": {func(e *expectations) { e.expectCreated("s", "a", noon) }, nil,
			expectationTimeout, false},
		"do not wait for the pods of another set": {func(e *expectations) { e.expectCreated("other", "a", noon) }, nil,
			0, false},
		"are forgotten with their set": {
			func(e *expectations) { e.expectCreated("s", "a", noon); e.forget("s") }, nil, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var e expectations
			test.expect(&e)
			if until := e.open("s", test.pods, noon.Add(test.after)); until.IsZero() == test.open {
				t.Errorf("it waits until %s", until)
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
		t.Error("a pod is outrun to which nothing was written")
	}
	expectations.expectWritten("set", pod("12"))
	now := time.Unix(1000, 0)
	for version, outrun := range map[string]bool{"9": true, "11": true, "12": false, "13": false, "100": false,
		"": false} {
		if expectations.stale("set", pod(version)) != outrun {
			t.Errorf("version %q: outrun is %t", version, !outrun)
		}
	}
	if until := expectations.open("set", []corev1.Pod{*pod("11")}, now); !until.IsZero() {
		t.Error("the whole set waits for what was written to one pod")
	}
	if !expectations.stale("set", pod("11")) {
		t.Error("what was written is forgotten before it shows")
	}
	expectations.open("set", []corev1.Pod{*pod("12")}, now)
	if expectations.stale("set", pod("11")) || len(expectations.sets) > 0 {
		t.Error("what was written is remembered although it shows")
	}
	expectations.expectWritten("set", pod("20"))
	expectations.open("set", nil, now)
	if len(expectations.sets) > 0 {
		t.Error("a pod that is gone is remembered")
	}
}
