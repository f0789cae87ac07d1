//go:build integration

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// A sampler sees all versions of the custom resources of a world.
type sampler struct {
	world *world
	mu    sync.Mutex
	seen  map[string][]version // by kind, in the order of the changes
}

// A version of a custom resource.
type version struct {
	number int64 // the resource version, by which all objects are ordered
	// done is true if kubectl wait and GitOps tools take the last change of the spec for done.
	done bool
	text string
}

// sampled are the kinds with the name of the object that is watched.
var sampled = map[string]string{
	"Controller": "slurm", "NodeSet": "gpu", "LoginSet": "login", "Accounting": "books", "RestApi": "slurm",
	"Token": "alice",
}

// startSampler watches the custom resources until the test ends.
func (w *world) startSampler(t *testing.T) *sampler {
	t.Helper()
	watching, err := client.NewWithWatch(server.Config, client.Options{Scheme: w.unobserved.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	all := &sampler{world: w, seen: map[string][]version{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	for kind := range sampled {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(slinkyv1beta1.SchemeGroupVersion.WithKind(kind + "List"))
		watch, failure := watching.Watch(ctx, list, client.InNamespace(w.namespace))
		if failure != nil {
			t.Fatal(failure)
		}
		var reading sync.WaitGroup
		reading.Go(func() {
			for event := range watch.ResultChan() {
				if object, ok := event.Object.(*unstructured.Unstructured); ok {
					all.add(kind, object)
				} else if ctx.Err() == nil {
					t.Errorf("watching %s: %v", kind, event.Object)
				}
			}
		})
		t.Cleanup(func() {
			watch.Stop()
			reading.Wait()
		})
	}
	t.Cleanup(cancel) // before the watches are stopped
	return all
}

func (s *sampler) add(kind string, object *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[kind] = append(s.seen[kind], version{
		numberOf(object.GetResourceVersion()), isDone(object), fmt.Sprintf("%s %s, generation %d, observed %d:\n%s", kind,
			object.GetName(), object.GetGeneration(), observedBy(object), strings.Join(conditionsOf(object), "\n")),
	})
}

// numberOf returns a resource version as a number.
func numberOf(version string) int64 {
	number, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		panic(err) // the API server numbers the versions of all objects
	}
	return number
}

func observedBy(object *unstructured.Unstructured) int64 {
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration") // zero if there is none
	return observed
}

// isDone applies the rules of kstatus, which kubectl wait --for=condition=Ready shares: the status is about the latest
// generation, and the condition Ready of that generation is True. The operator has no conditions Reconciling and
// Stalled.
func isDone(object *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions") // none at first
	for _, each := range conditions {
		condition, ok := each.(map[string]any)
		if ok && condition["type"] == slinkyv1beta1.ConditionReady {
			return condition["status"] == string(metav1.ConditionTrue) && observedBy(object) == object.GetGeneration() &&
				condition["observedGeneration"] == object.GetGeneration()
		}
	}
	return false
}

// after returns the versions of a kind after a resource version.
func (s *sampler) after(kind string, number int64) []version {
	s.mu.Lock()
	defer s.mu.Unlock()
	var later []version
	for _, each := range s.seen[kind] {
		if each.number > number {
			later = append(later, each)
		}
	}
	return later
}

// about returns an empty object of a kind that is watched.
func about(kind string) client.Object {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(slinkyv1beta1.SchemeGroupVersion.WithKind(kind))
	object.SetName(sampled[kind])
	return object
}

// begins waits for the first version since a change that does not take the change for done.
func (s *sampler) begins(t *testing.T, kind string, since int64) (first int64) {
	t.Helper()
	s.world.await(t, kind+" not to be ready", about(kind), func(context.Context) error {
		for _, each := range s.after(kind, since) {
			if !each.done {
				first = each.number
				return nil
			}
		}
		return errors.New("no version says that the change is not done")
	})
	return first
}

// finishes waits until the last version takes all changes for done.
func (s *sampler) finishes(t *testing.T, kind string) {
	t.Helper()
	s.world.await(t, kind+" to be ready", about(kind), func(context.Context) error {
		all := s.after(kind, 0)
		if len(all) == 0 || !all[len(all)-1].done {
			return errors.New("the last version does not say that it is done")
		}
		return nil
	})
}

// A want is what the pods of a custom resource must be like when a change is done.
type want struct {
	daemon naming.Daemon
	pods   int
	// before are the pods from before the change, if it replaces them: none of them may exist.
	before map[types.UID]bool
	// holds is about everything else, at a resource version; nil for nothing.
	holds func(ctx context.Context, at string) error
}

// check checks all versions after a resource version that take a change for done.
func (s *sampler) check(t *testing.T, kind string, since int64, wanted want) {
	t.Helper()
	for _, each := range s.after(kind, since) {
		if !each.done {
			continue
		}
		if err := s.holds(t.Context(), kind, strconv.FormatInt(each.number, 10), wanted); err != nil {
			t.Errorf("%s says that the change is done, at resource version %d: %v\n%s", kind, each.number, err, each.text)
			return // the following ones say the same
		}
	}
}

func (s *sampler) holds(ctx context.Context, kind, at string, wanted want) error {
	if wanted.daemon != "" {
		pods, err := s.podsAt(ctx, kind, at, wanted.daemon)
		if err != nil {
			return err
		}
		if problem := wanted.differs(pods); problem != "" {
			return fmt.Errorf("%s:%s", problem, describePods(pods, wanted.before))
		}
	}
	if wanted.holds == nil {
		return nil
	}
	return wanted.holds(ctx, at)
}

// podsAt returns the pods of a custom resource, including terminating ones, as they were at a resource version.
func (s *sampler) podsAt(ctx context.Context, kind, at string, daemon naming.Daemon) ([]corev1.Pod, error) {
	pods, selector := &corev1.PodList{}, client.MatchingLabels(naming.Selector(daemon, sampled[kind]))
	err := s.world.unobserved.List(ctx, pods, s.exactly(at), selector)
	return pods.Items, err
}

// exactly lists objects of the world as they were at a resource version.
func (s *sampler) exactly(at string) *client.ListOptions {
	return &client.ListOptions{Namespace: s.world.namespace, Raw: &metav1.ListOptions{
		ResourceVersion: at, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}}
}

// differs returns how pods are not as wanted; empty if they are.
func (w want) differs(pods []corev1.Pod) string {
	for i := range pods {
		switch pod := &pods[i]; {
		case w.before[pod.UID]:
			return "pod " + pod.Name + " from before the change exists"
		case !isReady(pod):
			return "pod " + pod.Name + " is not ready, or terminates"
		}
	}
	if len(pods) != w.pods {
		return fmt.Sprintf("there are %d pods, and should be %d", len(pods), w.pods)
	}
	return ""
}

func describePods(pods []corev1.Pod, before map[types.UID]bool) string {
	var text strings.Builder
	for i := range pods {
		pod := &pods[i]
		fmt.Fprintf(&text, "\n  pod %s: from before the change: %t, ready: %t, terminates: %t", pod.Name,
			before[pod.UID], isReady(pod), pod.DeletionTimestamp != nil)
	}
	return text.String()
}
