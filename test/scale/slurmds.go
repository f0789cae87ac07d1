package scale

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
	"github.com/slurm-operator/slurm-operator/test/scale/simulated"
)

const (
	// registrationInterval is how often started slurmds are registered.
	registrationInterval = 100 * time.Millisecond
	// slurmdTimeout is when slurmctld notices that a slurmd has exited: the SlurmdTimeout that the operator sets.
	slurmdTimeout = 300 * time.Second
)

// Slurmds simulates the slurmds in the pods of NodeSets: each registers its node when its pod is Ready, and stops
// responding when its pod is deleted.
type Slurmds struct {
	slurm *slurmtest.Server

	mutex      sync.Mutex
	conditions map[string][]corev1.PodConditionType // by pod name
	changed    chan struct{}
	started    map[string]string    // nodes that are about to register, with the instance IDs of their slurmds
	ended      map[string]time.Time // nodes whose slurmds have exited, and when
}

// SimulateSlurmds simulates the slurmds of a cluster until the test ends.
func SimulateSlurmds(t *testing.T, cluster *simulated.Cluster, server *slurmtest.Server) *Slurmds {
	t.Helper()
	slurmds := &Slurmds{
		slurm: server, conditions: map[string][]corev1.PodConditionType{}, changed: make(chan struct{}),
		started: map[string]string{}, ended: map[string]time.Time{},
	}
	factory := informers.NewSharedInformerFactoryWithOptions(cluster.Client, 0,
		informers.WithNamespace(corev1.NamespaceDefault),
		informers.WithTweakListOptions(
			func(options *metav1.ListOptions) { options.LabelSelector = slinkyv1beta1.LabelPodHostname }))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { slurmds.observe(nil, object.(*corev1.Pod)) },
		UpdateFunc: func(before, after any) { slurmds.observe(before.(*corev1.Pod), after.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unseen.Obj
			}
			slurmds.observe(object.(*corev1.Pod), nil)
		},
	})
	must(t, "watching slurmd pods", err)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { slurmds.register(ctx) })
	t.Cleanup(func() {
		stop()
		factory.Shutdown()
		running.Wait()
	})
	factory.StartWithContext(ctx)
	return slurmds
}

// observe handles a change of a pod; before is nil for a new pod, and after for a deleted one.
func (s *Slurmds) observe(before, after *corev1.Pod) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if before != nil && runs(before) && (after == nil || after.UID != before.UID || !runs(after)) {
		s.ended[before.Labels[slinkyv1beta1.LabelPodHostname]] = time.Now()
	}
	if after == nil {
		delete(s.conditions, before.Name)
		return
	}
	if runs(after) && (before == nil || before.UID != after.UID || !runs(before)) {
		node := after.Labels[slinkyv1beta1.LabelPodHostname]
		s.started[node] = instanceOf(after)
		delete(s.ended, node)
	}
	var conditions []corev1.PodConditionType
	for _, condition := range after.Status.Conditions {
		conditions = append(conditions, condition.Type)
	}
	s.conditions[after.Name] = conditions
	close(s.changed)
	s.changed = make(chan struct{})
}

// runs reports whether the slurmd in a pod responds.
func runs(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil &&
		slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		})
}

// instanceOf returns the instance ID of the slurmd in a pod, as its arguments ask for.
func instanceOf(pod *corev1.Pod) string {
	for _, container := range pod.Spec.Containers {
		if slices.Contains(container.Args, "--instance-id") {
			return slurm.Owner{Namespace: pod.Namespace, PodName: pod.Name, Node: pod.Spec.NodeName}.String()
		}
	}
	return ""
}

// register registers started slurmds with Slurm, and stops those that have exited.
func (s *Slurmds) register(ctx context.Context) {
	ticker := time.NewTicker(registrationInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		started, stopped := s.take(time.Now())
		if len(started) > 0 {
			s.slurm.Register(started)
		}
		if len(stopped) > 0 {
			s.slurm.StopNodes(stopped...)
		}
	}
}

// take returns and removes the nodes whose change slurmctld notices now: those that have started, and those that have
// not responded for slurmdTimeout.
func (s *Slurmds) take(now time.Time) (started map[string]string, stopped []string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	started, s.started = s.started, map[string]string{}
	for node, since := range s.ended {
		if now.Sub(since) >= slurmdTimeout {
			stopped = append(stopped, node)
			delete(s.ended, node)
		}
	}
	return started, stopped
}

// With returns how many pods have a condition.
func (s *Slurmds) With(condition corev1.PodConditionType) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	count := 0
	for _, conditions := range s.conditions {
		if slices.Contains(conditions, condition) {
			count++
		}
	}
	return count
}

// WaitForCondition waits until a pod has a condition.
func (s *Slurmds) WaitForCondition(ctx context.Context, pod string, condition corev1.PodConditionType) error {
	for {
		s.mutex.Lock()
		found, changed := slices.Contains(s.conditions[pod], condition), s.changed
		s.mutex.Unlock()
		if found {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
