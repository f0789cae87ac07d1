package review_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/webhook/review"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

// maxWarning is the length to which API servers truncate warnings if there are many.
const maxWarning = 256

var now = time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)

// A test is an object, as a user would write it, with the related objects.
type test struct {
	// was is the object before a change; empty if it is created.
	was, is string
	// status is the object's status, before and after the change.
	status string
	found  review.Found
	// refused is true if the object is refused, silent if there are no messages.
	refused, silent bool
}

// TestMessages writes all messages to one golden file, so that changes of messages are easy to review.
func TestMessages(t *testing.T) {
	var text strings.Builder
	for _, kind := range []struct {
		name  string
		tests map[string]test
		run   func(*testing.T, test) review.Review
	}{
		{"Controller", with(controllerTests, controllerCostTests), run(review.Controllers)},
		{"NodeSet", with(nodeSetTests, nodeSetCostTests), run(review.NodeSets)},
		{"LoginSet", loginSetTests, run(review.LoginSets)},
		{"Accounting", accountingTests, run(review.Accountings)},
		{"RestApi", restAPITests, run(review.RestAPIs)},
		{"Token", tokenTests, run(review.Tokens)},
	} {
		for _, name := range slices.Sorted(maps.Keys(kind.tests)) {
			t.Run(kind.name+" "+name, func(t *testing.T) {
				test := kind.tests[name]
				result := kind.run(t, test)
				if got := len(result.Refusals) > 0; got != test.refused {
					t.Errorf("refused is %t, want %t", got, test.refused)
				}
				if got := len(result.Refusals)+len(result.Warnings) == 0; got != test.silent {
					t.Errorf("silent is %t, want %t", got, test.silent)
				}
				fmt.Fprintf(&text, "%s %s\n", kind.name, name)
				for _, refusal := range result.Refusals {
					fmt.Fprintf(&text, "    refused: %s\n", refusal)
				}
				for _, warning := range result.Warnings {
					fmt.Fprintf(&text, "    warning: %s\n", warning)
					if length := len(warning.String()); length > maxWarning {
						t.Errorf("the warning has %d characters, want at most %d: %s", length, maxWarning, warning)
					}
				}
			})
		}
	}
	golden.Compare(t, "messages.txt", text.String())
}

// with returns the tests of two maps.
func with(tests, more map[string]test) map[string]test {
	all := maps.Clone(tests)
	maps.Copy(all, more)
	return all
}

// run returns a function that reviews objects of a resource type.
func run[T any](kind review.Reviewer[*T]) func(*testing.T, test) review.Review {
	return func(t *testing.T, test test) review.Review {
		t.Helper()
		test.found.Now = now
		after := decode[T](t, test.status, test.is)
		if test.was == "" {
			return kind.Create(after, test.found)
		}
		return kind.Update(decode[T](t, test.status, test.was), after, test.found)
	}
}

func decode[T any](t *testing.T, parts ...string) *T {
	t.Helper()
	object := new(T)
	for _, part := range append([]string{"metadata: {name: x, namespace: hpc, uid: x}"}, parts...) {
		if err := yaml.UnmarshalStrict([]byte(part), object); err != nil {
			t.Fatal(err)
		}
	}
	return object
}

// missing returns a result in which the targets do not exist.
func missing(targets ...review.Target) review.Found {
	found := review.Found{Objects: map[review.Target]review.Result{}}
	for _, target := range targets {
		found.Objects[target] = review.Result{}
	}
	return found
}

// existing returns a result in which the objects exist.
func existing(objects map[review.Target]metav1.Object) review.Found {
	found := review.Found{Objects: map[review.Target]review.Result{}}
	for target, object := range objects {
		found.Objects[target] = review.Result{Object: object}
	}
	return found
}

// nodeSets returns a result with the NodeSets of the cluster.
func nodeSets(sets ...slinkyv1beta1.NodeSet) review.Found { return review.Found{NodeSets: sets} }

func nodeSet(name string, replicas int32) slinkyv1beta1.NodeSet {
	return slinkyv1beta1.NodeSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       slinkyv1beta1.NodeSetSpec{Partition: slinkyv1beta1.NodeSetPartition{Enabled: true}},
		Status:     slinkyv1beta1.NodeSetStatus{Replicas: replicas},
	}
}

func configMap(files map[string]string) *corev1.ConfigMap { return &corev1.ConfigMap{Data: files} }

func claim(name string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes},
	}
}
