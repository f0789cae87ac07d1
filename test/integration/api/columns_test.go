//go:build integration

package api_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

func TestKubectlGetShowsReadinessAndReason(t *testing.T) {
	ns := namespace(t)
	ref := slinkyv1beta1.ObjectReference{Name: "slurm"}
	key := &slinkyv1beta1.SecretKeyReference{Name: "slurm-auth-jwt", Key: slinkyv1beta1.JWTKeyFile}
	issued := metav1.NewTime(time.Now().Add(-time.Hour))
	expires := metav1.NewTime(time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC))
	for _, object := range []client.Object{
		&slinkyv1beta1.Controller{
			ObjectMeta: metav1.ObjectMeta{Name: "slurm"},
			Status: slinkyv1beta1.ControllerStatus{
				IsReady: true, SlurmVersion: "26.05.5", APIVersion: "v0.0.45",
				Nodes:      &slinkyv1beta1.NodeCounts{Total: 16, Idle: 12, Allocated: 4},
				Jobs:       &slinkyv1beta1.JobCounts{Running: 3, Pending: 8},
				Conditions: ready(metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected, "slurmctld answers."),
			},
		},
		&slinkyv1beta1.NodeSet{
			ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
			Spec:       slinkyv1beta1.NodeSetSpec{ControllerRef: ref},
			Status: slinkyv1beta1.NodeSetStatus{
				Desired: 16, Replicas: 17, UpdatedReplicas: 17, ReadyReplicas: 17,
				SlurmIdle: 12, SlurmAllocated: 4, SlurmDown: 1, SlurmDrain: 1,
				Conditions: ready(metav1.ConditionFalse, slinkyv1beta1.ReasonDraining,
					"Waiting for 1 node: gpu-16 runs job 4711 until 14:05."),
			},
		},
		&slinkyv1beta1.NodeSet{
			ObjectMeta: metav1.ObjectMeta{Name: "burst"},
			Spec: slinkyv1beta1.NodeSetSpec{
				ControllerRef: ref, Elastic: &slinkyv1beta1.NodeSetElastic{MaxReplicas: 64},
			},
			Status: slinkyv1beta1.NodeSetStatus{
				Desired: 3, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 2, SlurmIdle: 1, SlurmAllocated: 2,
				Conditions: ready(metav1.ConditionFalse, slinkyv1beta1.ReasonPodsNotReady, "2 of 3 pods are ready."),
			},
		},
		&slinkyv1beta1.LoginSet{
			ObjectMeta: metav1.ObjectMeta{Name: "login"},
			Spec:       slinkyv1beta1.LoginSetSpec{ControllerRef: ref},
			Status: slinkyv1beta1.LoginSetStatus{
				Replicas: 2, Ready: "1/2",
				Conditions: ready(metav1.ConditionFalse, slinkyv1beta1.ReasonPodsNotReady, "1 of 2 pods is ready."),
			},
		},
		&slinkyv1beta1.Accounting{
			ObjectMeta: metav1.ObjectMeta{Name: "slurm"},
			Spec: slinkyv1beta1.AccountingSpec{StorageConfig: &slinkyv1beta1.StorageConfig{
				Host: "mariadb", Username: "slurm", PasswordKeyRef: key,
			}},
			Status: slinkyv1beta1.AccountingStatus{
				Conditions: ready(metav1.ConditionFalse, slinkyv1beta1.ReasonDatabaseUnreachable,
					"mariadb:3306 refuses connections."),
			},
		},
		&slinkyv1beta1.RestApi{
			ObjectMeta: metav1.ObjectMeta{Name: "slurm"},
			Spec:       slinkyv1beta1.RestApiSpec{ControllerRef: ref},
			Status: slinkyv1beta1.RestApiStatus{
				Replicas: 2, Ready: "2/2",
				Conditions: ready(metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected, "2 of 2 pods are ready."),
			},
		},
		&slinkyv1beta1.Token{
			ObjectMeta: metav1.ObjectMeta{Name: "alice"},
			Spec:       slinkyv1beta1.TokenSpec{Username: "alice", JWTKeyRef: key},
			Status: slinkyv1beta1.TokenStatus{
				IssuedAt: &issued, ExpiresAt: &expires,
				Conditions: ready(metav1.ConditionTrue, slinkyv1beta1.ReasonIssued,
					"The Secret alice-jwt-alice holds the token."),
			},
		},
		&slinkyv1beta1.NodeSet{
			ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: slinkyv1beta1.NodeSetSpec{ControllerRef: ref},
		},
	} {
		createWithStatus(t, ns, object)
	}
	for golden, args := range map[string][]string{
		"get-slurm.golden":      {"get", "slurm", "-n", ns},
		"get-slurm-wide.golden": {"get", "slurm", "-n", ns, "-o", "wide"},
	} {
		out, err := kubectl(t, args...)
		if err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
		checkGolden(t, golden, withoutAges(out))
	}
}

func TestShortNames(t *testing.T) {
	for _, kind := range readContract(t) {
		for _, name := range kind.ShortNames {
			for _, spelling := range []string{name, name + ".slinky.slurm.net", name + ".v1beta1.slinky.slurm.net"} {
				t.Run(spelling, func(t *testing.T) {
					ns := namespace(t)
					create(t, object(kind.Kind, ns, "x", kind.Minimal))
					out, err := kubectl(t, "get", spelling, "-n", ns, "-o", "name")
					want := strings.ToLower(kind.Kind) + ".slinky.slurm.net/x\n"
					if err != nil || out != want {
						t.Errorf("kubectl get %s = %q, %v, want %q", spelling, out, err, want)
					}
				})
			}
		}
	}
}

func createWithStatus(t *testing.T, namespace string, object client.Object) {
	t.Helper()
	object.SetNamespace(namespace)
	desired := object.DeepCopyObject().(client.Object)
	if err := strict.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %T: %v", object, err)
	}
	desired.SetResourceVersion(object.GetResourceVersion())
	if err := strict.Status().Update(t.Context(), desired); err != nil {
		t.Fatalf("updating the status of %T: %v", object, err)
	}
}

func ready(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{{
		Type: slinkyv1beta1.ConditionReady, Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(time.Date(2020, 1, 31, 12, 0, 0, 0, time.UTC)),
	}}
}

// withoutAges replaces ages, which differ between runs, with a placeholder, and keeps the width of their columns.
func withoutAges(out string) string {
	ages := regexp.MustCompile(`\b[0-9]+[sm]( +|\n)`)
	return ages.ReplaceAllStringFunc(out, func(age string) string {
		if strings.HasSuffix(age, "\n") {
			return "~\n"
		}
		return "~" + strings.Repeat(" ", len(age)-1)
	})
}
