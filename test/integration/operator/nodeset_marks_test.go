//go:build integration

package operator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// hasCordon waits until a pod has a cordon annotation and its source, which may both be empty.
func (w *nodeWorld) hasCordon(t *testing.T, name, cordon, source string) {
	t.Helper()
	pod := &corev1.Pod{}
	w.until(t, "the cordon of "+name, func(context.Context) error {
		w.get(t, name, pod)
		is, by := pod.Annotations[slinkyv1beta1.AnnotationPodCordon], pod.Annotations[slinkyv1beta1.AnnotationPodCordonSource]
		if is != cordon || by != source {
			return fmt.Errorf("the cordon is %q with the source %q", is, by)
		}
		return nil
	})
}

func TestScaleInMarksPodsAndKeepsCordonsOfUsers(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(3))
	for _, node := range []string{"gpu-0", "gpu-1", "gpu-2"} {
		w.runJob(t, node, time.Hour)
	}
	pod := &corev1.Pod{}
	w.get(t, "gpu-1", pod)
	w.patch(t, pod, `{"metadata":{"annotations":{%q:"true"}}}`, slinkyv1beta1.AnnotationPodCordon)
	w.node(t, "gpu-1", "drained", (*slurm.Node).DrainedByUs)

	w.scale(t, 0)
	w.hasCordon(t, "gpu-0", "true", slinkyv1beta1.PodCordonScaleIn)
	w.hasCordon(t, "gpu-1", "true", "")
	w.hasCordon(t, "gpu-2", "true", slinkyv1beta1.PodCordonScaleIn)
	w.waitUntilIdle(t)

	// A user takes over one of the marks.
	w.get(t, "gpu-2", pod)
	w.patch(t, pod, `{"metadata":{"annotations":{%q:null}}}`, slinkyv1beta1.AnnotationPodCordonSource)
	w.scale(t, 3)
	w.hasCordon(t, "gpu-0", "", "")
	w.node(t, "gpu-0", "open for jobs", func(node *slurm.Node) bool { return !node.Draining() })
	for _, name := range []string{"gpu-1", "gpu-2"} {
		w.node(t, name, "drained for the cordon",
			func(node *slurm.Node) bool { return node.Reason == "slurm-operator: pod is cordoned" })
		w.hasCordon(t, name, "true", "")
	}
	w.waitUntilIdle(t)
}
