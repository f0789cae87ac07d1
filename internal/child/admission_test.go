package child_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slurm-operator/slurm-operator/internal/child"
)

// sized returns a pod that requests and limits so much of each resource.
func sized(cpu, memory string) *corev1.Pod {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts}}, {},
	}
	return pod
}

// A quota counts the pod that is to be replaced. It must not be deleted if the next one does not fit without it either.
func TestAdmissionInPlaceOfAPod(t *testing.T) {
	const quota = "exceeded quota: compute, "
	pod := sized("1", "1Gi")
	ended, other := sized("1", "1Gi"), sized("1", "1Gi")
	ended.Status.Phase, other.Spec.PriorityClassName = corev1.PodFailed, "low"
	for name, test := range map[string]struct {
		refusal  string
		replaces *corev1.Pod
		admitted bool
	}{
		"admitted": {"", pod, true},
		"room for one pod of the same size": {
			quota + "requested: limits.cpu=1,requests.cpu=1, used: limits.cpu=1,requests.cpu=1, " +
				"limited: limits.cpu=1,requests.cpu=1", pod, true,
		},
		"room for one larger pod": {
			quota + "requested: cpu=1500m,memory=2Gi, used: cpu=1,memory=1Gi, limited: cpu=2,memory=2Gi", pod, true,
		},
		"room for so many pods": {quota + "requested: pods=1, used: pods=5, limited: pods=5", pod, true},
		"room for so many objects": {
			quota + "requested: count/pods=1, used: count/pods=5, limited: count/pods=5", pod, true,
		},
		"no room for a larger pod": {quota + "requested: cpu=3, used: cpu=1, limited: cpu=2", pod, false},
		"one of two does not fit": {
			quota + "requested: cpu=1,pods=1, used: cpu=2,pods=1, limited: cpu=1,pods=1", pod, false,
		},
		"quota that was lowered": {
			quota + "requested: requests.memory=1Gi, used: requests.memory=4Gi, limited: requests.memory=2Gi", pod, false,
		},
		"quota that does not count": {quota + "requested: cpu=3, used: cpu=0, limited: cpu=2", pod, false},
		"resource that the pod does not have": {
			quota + "requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=1, " +
				"limited: requests.nvidia.com/gpu=1", pod, false,
		},
		"pod that has ended, and is not counted": {quota + "requested: cpu=1, used: cpu=1, limited: cpu=1", ended, false},
		"pod of another priority, whose quota may be another": {
			quota + "requested: cpu=1, used: cpu=1, limited: cpu=1", other, false,
		},
		"amounts that cannot be read": {quota + "requested: cpu=many, used: cpu=1, limited: cpu=1", pod, false},
		"quota without amounts":       {quota + "too much", pod, false},
		"quota wants requests":        {"failed quota: compute: must specify limits.cpu for: slurmctld", pod, false},
		"missing PriorityClass":       {"no PriorityClass with name high was found", pod, false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, created client.Object, _ ...client.CreateOption) error {
					if owner := created.GetOwnerReferences(); len(owner) != 1 || owner[0].UID != "s" {
						return fmt.Errorf("the pod is owned by %v", owner)
					}
					if test.refusal == "" {
						return nil
					}
					return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New(test.refusal))
				},
			}).Build()
			set := &appsv1.StatefulSet{}
			set.Name, set.UID, set.Spec.Template.Spec.PriorityClassName = "slurm-controller", "s", "high"
			if test.replaces.Spec.PriorityClassName == "" {
				set.Spec.Template.Spec.PriorityClassName = ""
			}
			err := child.NewApplier(cluster).AdmitsInPlaceOf(t.Context(), set, test.replaces)
			if (err == nil) != test.admitted {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
