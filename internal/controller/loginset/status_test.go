package loginset

import (
	"cmp"
	"errors"
	"slices"
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
	running := func(name, owner string, change func(*corev1.Pod)) corev1.Pod {
		pod := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Annotations: map[string]string{annotationKeys: keysHash(fullest().set)},
				OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: owner, Controller: new(true)}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		change(&pod)
		return pod
	}
	unchanged := func(*corev1.Pod) {}
	terminating := func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) }
	new3 := []corev1.Pod{
		running("login-b-1", "login-b", unchanged), running("login-b-2", "login-b", unchanged),
		running("login-b-3", "login-b", unchanged),
	}
	with3 := func(more ...corev1.Pod) []corev1.Pod { return append(slices.Clone(new3), more...) }
	full := appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3}
	with := func(change func(*appsv1.DeploymentStatus)) appsv1.DeploymentStatus {
		status := full
		change(&status)
		return status
	}
	tests := map[string]struct {
		status  appsv1.DeploymentStatus
		pods    []corev1.Pod
		keys    string // in the ConfigMap, if they are not those of the spec
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
		"is ready when no other pod runs": {
			status: full, pods: new3, ready: true, reason: slinkyv1beta1.ReasonAsExpected,
			message: "users log in through port 2222 of the Service login",
		},
		"waits until an old pod has terminated, which a Deployment does not count": {
			status: full, pods: with3(running("login-a-1", "login-a", terminating)),
			reason:  slinkyv1beta1.ReasonReconciling,
			message: "3 of 3 pods are up to date; 1 old ones have not terminated yet, such as login-a-1",
		},
		"counts old pods that have not terminated": {
			status:  full,
			pods:    with3(running("login-a-2", "login-a", terminating), running("login-a-1", "login-a", terminating)),
			reason:  slinkyv1beta1.ReasonReconciling,
			message: "3 of 3 pods are up to date; 2 old ones have not terminated yet, such as login-a-1",
		},
		"waits for an old pod that the cache shows without its deletion": {
			status: full, pods: with3(running("login-a-1", "login-a", unchanged)),
			reason:  slinkyv1beta1.ReasonReconciling,
			message: "3 of 3 pods are up to date; old pods are being deleted",
		},
		"ignores a terminating pod whose containers have exited": {
			status: full, pods: with3(running("login-a-1", "login-a", func(pod *corev1.Pod) {
				terminating(pod)
				pod.Status.Phase = corev1.PodSucceeded
			})), ready: true, reason: slinkyv1beta1.ReasonAsExpected,
			message: "users log in through port 2222 of the Service login",
		},
		"ignores a pod of another owner": {
			status: full, pods: with3(running("login-x", "loginx", terminating)), ready: true,
			reason: slinkyv1beta1.ReasonAsExpected, message: "users log in through port 2222 of the Service login",
		},
		"waits until the pods' ConfigMap has the authorized keys": {
			status: full, pods: new3, keys: "ssh-ed25519 AAAA former", reason: slinkyv1beta1.ReasonReconciling,
			message: "the authorized keys are being updated in running pods",
		},
		"waits until running pods are told to read the authorized keys": {
			status: full, pods: append(new3[:2:2], running("login-b-3", "login-b", func(pod *corev1.Pod) {
				pod.Annotations[annotationKeys] = "former"
			})), reason: slinkyv1beta1.ReasonReconciling,
			message: "the authorized keys are being updated in running pods, such as login-b-3",
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
			scope.authorizedKeys = cmp.Or(test.keys, scope.set.Spec.RootSSHAuthorizedKeys)
			scope.deployment = &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "login", Generation: 2}, Status: test.status,
			}
			verdict := judge(scope, test.failure)
			if verdict.Reason != test.reason || verdict.Message != test.message || verdict.Ready() != test.ready {
				t.Errorf("got verdict %+v", verdict)
			}
		})
	}
}
