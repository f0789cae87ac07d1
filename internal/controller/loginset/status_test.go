package loginset

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
)

func TestBlockedLoginSet(t *testing.T) {
	tests := map[string]struct {
		change func(*scope)
		reason string
	}{
		"none": {change: func(*scope) {}},
		"Controller is missing": {func(s *scope) { s.controller = nil },
			slinkyv1beta1.ReasonControllerNotFound},
		"waits for the key of the Controller": {func(s *scope) { s.slurmKey = nil },
			slinkyv1beta1.ReasonControllerNotReady},
		"sssd.conf is missing": {func(s *scope) { s.sssdConf = nil },
			slinkyv1beta1.ReasonReferenceNotFound},
		"host keys are missing in the Secret": {func(s *scope) { s.hostKeys.Data = nil },
			slinkyv1beta1.ReasonInvalidSpec},
		"host keys are generated without a Secret": {change: func(s *scope) { s.hostKeys = nil }},
		"waits for the Accounting that has the key": {func(s *scope) {
			s.controller.Spec.SlurmKeyRef, s.controller.Spec.AccountingRef = nil, &slinkyv1beta1.ObjectReference{
				Name: "db"}
		}, slinkyv1beta1.ReasonControllerNotReady},
		"does not wait for an Accounting without the key": {change: func(s *scope) {
			s.controller.Spec.AccountingRef = &slinkyv1beta1.ObjectReference{Name: "db"}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scope := fullest()
			test.change(scope)
			if verdict, blocked := obstacle(scope); verdict.Reason != test.reason || blocked != (test.reason != "") {
				t.Errorf("blocked: %v, %+v", blocked, verdict)
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	tests := map[string]struct {
		failure error
		reason  string
	}{
		"is none without an error":      {},
		"is none when a retry may help": {failure: errors.New("timeout")},
		"is a conflicting object": {
			errors.Join(nil, &child.ForeignError{Kind: "Service"}), slinkyv1beta1.ReasonInvalidSpec,
		},
		"is a fragment that cannot be merged": {
			&invalid{errors.New("merging spec.login: no")}, slinkyv1beta1.ReasonInvalidSpec,
		},
		"is a template that Kubernetes rejects": {
			apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "login", nil), slinkyv1beta1.ReasonInvalidSpec,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if verdict, refused := refusal(test.failure); verdict.Reason != test.reason ||
				refused != (test.reason != "") {
				t.Errorf("refused: %v, %+v", refused, verdict)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	evicted := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "login-1"}, Status: corev1.PodStatus{
		Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory",
	}}}
	full := appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3}
	with := func(change func(*appsv1.DeploymentStatus)) appsv1.DeploymentStatus {
		status := full
		change(&status)
		return status
	}
	tests := map[string]struct {
		status  appsv1.DeploymentStatus
		pods    []corev1.Pod
		failure error
		reason  string
		message string
		ready   bool
	}{
		"is ready when all pods are": {
			status: full, ready: true, reason: slinkyv1beta1.ReasonAsExpected,
			message: "users log in through port 2222 of the Service login",
		},
		"ignores a pod that was replaced": {
			status: full, pods: evicted, ready: true, reason: slinkyv1beta1.ReasonAsExpected,
			message: "users log in through port 2222 of the Service login",
		},
		"waits for Kubernetes": {
			status: with(func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = 1 }),
			reason: slinkyv1beta1.ReasonReconciling, message: "pods are being created",
		},
		"counts pods that are up to date": {
			status: with(func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas = 1 }),
			reason: slinkyv1beta1.ReasonReconciling, message: "pods are being replaced: 1 of 3 are up to date",
		},
		"counts pods that are ready": {
			status: with(func(s *appsv1.DeploymentStatus) { s.ReadyReplicas = 2 }),
			reason: slinkyv1beta1.ReasonPodsNotReady, message: "2 of 3 pods are ready",
		},
		"waits for pods to be deleted": {
			status: with(func(s *appsv1.DeploymentStatus) { s.Replicas = 5 }),
			reason: slinkyv1beta1.ReasonReconciling, message: "pods are being replaced: 3 of 3 are up to date",
		},
		"reports why pods cannot be created": {
			status: with(func(s *appsv1.DeploymentStatus) {
				s.ReadyReplicas = 0
				s.Conditions = []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"},
				}
			}),
			reason: slinkyv1beta1.ReasonPodsFailing, message: "Kubernetes does not create a pod: exceeded quota",
		},
		"reports which pod fails": {
			status: with(func(s *appsv1.DeploymentStatus) { s.ReadyReplicas = 2 }), pods: evicted,
			reason: slinkyv1beta1.ReasonPodsFailing, message: "pod login-1: Evicted (low on memory)",
		},
		"reports an error that is retried": {
			status: full, failure: errors.New("timeout"), reason: slinkyv1beta1.ReasonReconcileError,
			message: "timeout",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scope := fullest()
			scope.pods = test.pods
			scope.deployment = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: test.status}
			verdict := judge(scope, test.failure)
			if verdict.Reason != test.reason || verdict.Message != test.message || verdict.Ready() != test.ready {
				t.Errorf("got verdict %+v", verdict)
			}
		})
	}
}
