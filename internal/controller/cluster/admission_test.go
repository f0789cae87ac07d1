package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

const noPriorityClass = "no PriorityClass with name high was found"

// podsRefused refuses pods.
var podsRefused = interceptor.Funcs{
	Create: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
		if _, isPod := object.(*corev1.Pod); isPod {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, object.GetName(), errors.New(noPriorityClass))
		}
		return to.Create(ctx, object, options...)
	},
}

// slurmctld keeps running if Kubernetes would not create its next pod, and the error says why.
func TestPodIsReplacedOnlyByOneThatKubernetesAdmits(t *testing.T) {
	for name, test := range map[string]struct {
		calls   interceptor.Funcs
		pod     bool
		deleted bool
		says    string
	}{
		"pod is admitted":         {pod: true, deleted: true},
		"pod is refused":          {calls: podsRefused, pod: true, says: noPriorityClass},
		"refused pod is reported": {calls: podsRefused, says: noPriorityClass},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(promotedAsBuilt(t), withState)
			reconciler, pod := withRunning(t, scope, test.calls)
			if !test.pod {
				scope.pods = nil
			}
			plan := decide(scope)
			scope.controller.Spec.Template.Spec.Raw = []byte(`{"priorityClassName":"high"}`)
			err := reconciler.act(t.Context(), scope, &plan)
			if (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("the error is %v", err)
			}
			err = reconciler.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) != test.deleted {
				t.Errorf("the pod: %v", err)
			}
		})
	}
}

// Partitions are not closed for a pod that Kubernetes would not create: they would stay closed.
func TestPartitionsStayOpenForAPodThatKubernetesRefuses(t *testing.T) {
	for name, calls := range map[string]interceptor.Funcs{"pod is refused": podsRefused, "pod is admitted": {}} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(promotedAsBuilt(t), withState)
			reconciler, _ := withRunning(t, scope, calls)
			scope.controller.Spec.Persistence.Enabled, scope.claim = new(false), ""
			scope.statefulSet.Spec.Template.Annotations[slinkyv1beta1.GroupName+"/template-hash"] = "next"
			scope.pods[0].Status.Phase = corev1.PodRunning
			plan := plan{stage: promote, image: "new", candidate: candidate{hash: "closed", closedBefore: []string{"open"}}}
			err := reconciler.act(t.Context(), scope, &plan)
			if refused := calls.Create != nil; refused != (err != nil) ||
				refused && !strings.Contains(err.Error(), noPriorityClass) {
				t.Errorf("the error is %v", err)
			}
			err = reconciler.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "slurm-config"},
				&corev1.ConfigMap{})
			if refused := calls.Create != nil; refused != apierrors.IsNotFound(err) {
				t.Errorf("the closed configuration: %v", err)
			}
		})
	}
}

// withRunning adds slurmctld's StatefulSet, which is some time old, and its pod to a scope and to an API server.
func withRunning(t *testing.T, scope *scope, calls interceptor.Funcs) (*Reconciler, *corev1.Pod) {
	t.Helper()
	set := ranWith(scope.claim)
	set.Namespace, set.Name = "ns", "slurm-controller"
	set.CreationTimestamp = metav1.NewTime(start.Add(-time.Hour))
	set.Status.UpdateRevision = "next"
	set.OwnerReferences = ownedBy(scope)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "slurm-controller-0",
		Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "first"},
	}}
	pod.Spec.Volumes = []corev1.Volume{onClaim(scope.claim)}
	reconciler := reconcilerWith(t, calls, set.DeepCopy(), pod.DeepCopy())
	if err := reconciler.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	scope.statefulSet, scope.pods = set, []corev1.Pod{*pod}
	return reconciler, pod
}
