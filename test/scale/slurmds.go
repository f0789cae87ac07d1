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
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
	"github.com/slurm-operator/slurm-operator/test/scale/simulated"
)

// registration is how long slurmds that start at about the same time take to register together.
const registration = 100 * time.Millisecond

// Slurmds play the slurmds in the pods of NodeSets: each registers its node when its pod is Ready, and no longer answers when
// its pod goes.
type Slurmds struct {
	slurm *slurmtest.Server

	mutex      sync.Mutex
	conditions map[string][]corev1.PodConditionType // of each pod
	changed    chan struct{}
	nodes      map[string]bool // whether each runs; those that have changed
}

// PlaySlurmds plays the slurmds of a cluster until the test ends.
func PlaySlurmds(t *testing.T, cluster *simulated.Cluster, slurm *slurmtest.Server) *Slurmds {
	t.Helper()
	slurmds := &Slurmds{
		slurm: slurm, conditions: map[string][]corev1.PodConditionType{}, changed: make(chan struct{}), nodes: map[string]bool{},
	}
	factory := informers.NewSharedInformerFactoryWithOptions(cluster.Client, 0,
		informers.WithNamespace(corev1.NamespaceDefault),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = slinkyv1beta1.LabelPodHostname }))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { slurmds.see(nil, object.(*corev1.Pod)) },
		UpdateFunc: func(before, after any) { slurmds.see(before.(*corev1.Pod), after.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unseen.Obj
			}
			slurmds.see(object.(*corev1.Pod), nil)
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

// see notes what becomes of a pod; either is nil when there is none.
func (s *Slurmds) see(before, after *corev1.Pod) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if before != nil && runs(before) && (after == nil || after.UID != before.UID || !runs(after)) {
		s.nodes[before.Labels[slinkyv1beta1.LabelPodHostname]] = false
	}
	if after == nil {
		delete(s.conditions, before.Name)
		return
	}
	if runs(after) && (before == nil || before.UID != after.UID || !runs(before)) {
		s.nodes[after.Labels[slinkyv1beta1.LabelPodHostname]] = true
	}
	var conditions []corev1.PodConditionType
	for _, condition := range after.Status.Conditions {
		conditions = append(conditions, condition.Type)
	}
	s.conditions[after.Name] = conditions
	close(s.changed)
	s.changed = make(chan struct{})
}

// runs tells whether a slurmd answers in a pod.
func runs(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// register tells Slurm of the slurmds that have started and ended.
func (s *Slurmds) register(ctx context.Context) {
	ticker := time.NewTicker(registration)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		s.mutex.Lock()
		nodes := s.nodes
		s.nodes = map[string]bool{}
		s.mutex.Unlock()
		var started, ended []string
		for node, runs := range nodes {
			if runs {
				started = append(started, node)
			} else {
				ended = append(ended, node)
			}
		}
		if len(started) > 0 {
			s.slurm.AddNodes(started...)
		}
		if len(ended) > 0 {
			s.slurm.StopNodes(ended...)
		}
	}
}

// With is how many pods have a condition.
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
