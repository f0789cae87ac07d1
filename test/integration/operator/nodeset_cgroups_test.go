//go:build integration

package operator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// slurmd exits, with its jobs, if cgroups are enabled again in a pod that has run without them. So such pods are
// replaced first, although their template is the current one: each when its jobs have ended, and only once.
func TestPodsFromBeforeCgroupsWereDisabledAreReplaced(t *testing.T) {
	w := newNodeWorld(t, newNodeSet(2))
	job := w.runJob(t, "gpu-1", time.Hour)
	before := w.uids(t)
	pod, live := &corev1.Pod{}, &corev1.ConfigMap{}
	w.get(t, "gpu-1", pod)
	disabled := pod.CreationTimestamp.Add(time.Second)
	w.until(t, "a time after the creation of the pods", func(context.Context) error {
		if time.Now().Before(disabled) {
			return errors.New("it is too early")
		}
		return nil
	})
	w.get(t, "slurm-config", live)
	w.patch(t, live, `{"metadata":{"annotations":{%q:%q}}}`, naming.AnnotationCgroupsDisabled,
		disabled.UTC().Format(time.RFC3339))
	w.patch(t, w.set, `{"metadata":{"annotations":{"example.com/try":"again"}}}`)

	w.until(t, "the replacement of the idle pod", func(context.Context) error {
		if w.uids(t)["gpu-0"] == before["gpu-0"] {
			return errors.New("it is still the old one")
		}
		return nil
	})
	if now := w.uids(t); now["gpu-1"] != before["gpu-1"] {
		t.Fatal("the pod with a job was replaced")
	}
	w.cancelJob(t, job)
	w.until(t, "the replacement of the other pod", func(context.Context) error {
		if uid := w.uids(t)["gpu-1"]; uid == before["gpu-1"] || uid == "" {
			return errors.New("it is not there yet")
		}
		return nil
	})
	w.ready(t)
	replaced := w.uids(t)
	w.waitUntilIdle(t)
	for name, uid := range w.uids(t) {
		if replaced[name] != uid {
			t.Errorf("%s was replaced again", name)
		}
	}
}
