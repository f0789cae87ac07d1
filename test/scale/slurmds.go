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
	serverOf func(*corev1.Pod) *slurmtest.Server

	mutex      sync.Mutex
	conditions map[string][]corev1.PodConditionType // by pod name
	changed    chan struct{}
	started    map[slurmd]string    // those that are about to register, with their instance IDs
	ended      map[slurmd]time.Time // those that have exited, and when
}

// A slurmd serves a node of a Slurm cluster.
type slurmd struct {
	server *slurmtest.Server
	node   string
}

// SimulateSlurmds simulates the slurmds of a Slurm cluster until the test ends.
func SimulateSlurmds(t *testing.T, cluster *simulated.Cluster, server *slurmtest.Server) *Slurmds {
	t.Helper()
	return SimulateSlurmdsOf(t, cluster, func(*corev1.Pod) *slurmtest.Server { return server })
}

// SimulateSlurmdsOf simulates the slurmds of several Slurm clusters until the test ends. A function returns that of a
// pod.
func SimulateSlurmdsOf(t *testing.T, cluster *simulated.Cluster,
	serverOf func(*corev1.Pod) *slurmtest.Server) *Slurmds {
	t.Helper()
	slurmds := &Slurmds{
		serverOf: serverOf, conditions: map[string][]corev1.PodConditionType{}, changed: make(chan struct{}),
		started: map[slurmd]string{}, ended: map[slurmd]time.Time{},
	}
	factory := informers.NewSharedInformerFactoryWithOptions(cluster.Client, 0,
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
		s.ended[s.slurmdOf(before)] = time.Now()
	}
	if after == nil {
		delete(s.conditions, before.Name)
		return
	}
	if runs(after) && (before == nil || before.UID != after.UID || !runs(before)) {
		s.started[s.slurmdOf(after)] = instanceOf(after)
		delete(s.ended, s.slurmdOf(after))
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

func (s *Slurmds) slurmdOf(pod *corev1.Pod) slurmd {
	return slurmd{s.serverOf(pod), pod.Labels[slinkyv1beta1.LabelPodHostname]}
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
		for server, instances := range started {
			server.Register(instances)
		}
		for server, nodes := range stopped {
			server.StopNodes(nodes...)
		}
	}
}

// take returns and removes the nodes whose change slurmctld notices now: those that have started, and those that have
// not responded for slurmdTimeout.
func (s *Slurmds) take(now time.Time) (started map[*slurmtest.Server]map[string]string,
	stopped map[*slurmtest.Server][]string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	started, stopped = map[*slurmtest.Server]map[string]string{}, map[*slurmtest.Server][]string{}
	for slurmd, instance := range s.started {
		if started[slurmd.server] == nil {
			started[slurmd.server] = map[string]string{}
		}
		started[slurmd.server][slurmd.node] = instance
	}
	clear(s.started)
	for slurmd, since := range s.ended {
		if now.Sub(since) >= slurmdTimeout {
			stopped[slurmd.server] = append(stopped[slurmd.server], slurmd.node)
			delete(s.ended, slurmd)
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
