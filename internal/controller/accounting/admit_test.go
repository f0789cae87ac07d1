package accounting

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
)

// A StatefulSet reports only in events that Kubernetes refuses its pods.
func TestSlurmdbdIsNotReplacedUnlessTheNextOneIsAdmitted(t *testing.T) {
	const exceeded = "exceeded quota: compute, requested: limits.cpu=1, used: limits.cpu=1, limited: limits.cpu=1"
	const security = `violates PodSecurity "restricted:latest": hostPath volumes (volume "home")`
	gone := func(s *scope) { s.pods = nil }
	justNow := func(s *scope) { s.pods, s.now = nil, s.statefulSet.CreationTimestamp.Add(time.Second) }
	uses := func(s *scope) {
		one := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
		}
		s.pods[0].Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
	}
	for name, test := range map[string]struct {
		refusal  string // empty if the next pod is admitted
		changes  []func(*scope)
		reason   string // of the refusal that the status shows
		message  string
		replaced bool
	}{
		"admitted":         {"", nil, "", "", true},
		"no pod, admitted": {"", []func(*scope){gone}, "", "", false},
		"refused by a LimitRange": {"minimum cpu usage per Container is 100m, but request is 50m", nil,
			slinkyv1beta1.ReasonQuotaExceeded,
			"pod slurm-accounting-0 is not replaced, because Kubernetes refuses the next one: ", false},
		"refused by Pod Security": {security, nil, slinkyv1beta1.ReasonPodSecurity, "label the namespace", false},
		"refused by a quota, and needs more than the pod has": {
			strings.Replace(exceeded, "requested: limits.cpu=1", "requested: limits.cpu=2", 1), []func(*scope){uses},
			slinkyv1beta1.ReasonQuotaExceeded, "pod slurm-accounting-0 is not replaced", false,
		},
		// The quota has room when the pod is deleted.
		"refused by a quota, and needs no more": {exceeded, []func(*scope){uses}, "", "", true},
		"no pod, refused": {
			exceeded, []func(*scope){gone}, slinkyv1beta1.ReasonQuotaExceeded, "raise", false,
		},
		"no pod yet": {exceeded, []func(*scope){justNow}, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			scope.now = time.Unix(1_800_000_000, 0)
			replacing(scope, newSlurmdbd(ready), nil)
			scope.statefulSet.CreationTimestamp = metav1.NewTime(scope.now.Add(-time.Hour))
			for _, change := range test.changes {
				change(scope)
			}
			replaced := false
			kubernetes := newKubernetes(t, scope, interceptor.Funcs{
				Create: func(ctx context.Context, next client.WithWatch, object client.Object,
					options ...client.CreateOption) error {
					if _, isPod := object.(*corev1.Pod); isPod && test.refusal != "" {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, object.GetName(),
							errors.New(test.refusal))
					}
					return next.Create(ctx, object, options...)
				},
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
					replaced = true
					return nil
				},
			})
			reconciler := &Reconciler{Client: kubernetes, Children: child.NewApplier(kubernetes)}
			err := reconciler.act(t.Context(), scope, decide(scope))
			verdict, _ := child.Refusal(err)
			if verdict.Reason != test.reason || !strings.Contains(verdict.Message, test.message) ||
				test.reason == "" && err != nil {
				t.Errorf("got %v, with the verdict %+v", err, verdict)
			}
			if replaced != test.replaced {
				t.Errorf("the pod was replaced: %v", replaced)
			}
			if len(scope.pods) == 0 && requeueAfter(scope) == 0 {
				t.Error("nothing finds out whether a pod is admitted")
			}
		})
	}
}
