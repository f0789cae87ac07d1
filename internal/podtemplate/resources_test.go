package podtemplate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
)

func TestHelpersGetDefaultResources(t *testing.T) {
	users := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
	spec := corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "install"}},
		Containers:     []corev1.Container{{Name: "daemon"}, {Name: "sidecar", Resources: users}},
	}
	podtemplate.Size(&spec, "install", "sidecar")
	if got := spec.InitContainers[0].Resources; got.Requests.Cpu().IsZero() || got.Requests.Memory().IsZero() ||
		got.Limits.Cpu().IsZero() || got.Limits.Memory().IsZero() {
		t.Errorf("the helper has %v", got)
	}
	if got := spec.Containers[0].Resources; podtemplate.IsSized(got) {
		t.Errorf("the daemon has %v", got)
	}
	// A limit of the operator below a request of the user would make the pod invalid.
	if got := spec.Containers[1].Resources; got.Requests.Cpu().String() != "2" || len(got.Limits) != 0 {
		t.Errorf("the user's container has %v", got)
	}
}
