package command

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// A sidecar of the spec may come before the daemon.
func TestUpgradePlanNamesTheImageOfTheDaemon(t *testing.T) {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: naming.Labels(naming.Slurmd, "gpu")},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "exporter", Image: "exporter:1.9"}, {Name: "slurmd", Image: "example.com/slurmd-mpi:25.11"},
		}},
	}
	images := map[string]string{}
	addImages(images, []corev1.Pod{pod})
	if got := images["slurmd/gpu"]; len(images) != 1 || got != "example.com/slurmd-mpi:25.11" {
		t.Errorf("the images are %v", images)
	}
	if daemon := daemonOf(&pod); daemon != "slurmd" {
		t.Errorf("the doctor reads the log of %q", daemon)
	}
}
