package simulated

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// PodCount is how many pods were ever created, how many exist, and how many of these are Ready.
type PodCount struct{ Created, Present, Ready int }

// Pods counts pods with a single watch, so that counting thousands disturbs the measured cluster as little as possible.
type Pods struct {
	mutex   sync.Mutex
	count   PodCount
	ready   map[types.UID]bool
	changed chan struct{}
}

// Pods counts the pods in a namespace that match a selector, from now until the test ends.
func (c *Cluster) Pods(t *testing.T, namespace, selector string) *Pods {
	t.Helper()
	pods := &Pods{ready: map[types.UID]bool{}, changed: make(chan struct{})}
	factory := informers.NewSharedInformerFactoryWithOptions(c.Client, 0,
		informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = selector }))
	registration, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { pods.seen(object.(*corev1.Pod)) },
		UpdateFunc: func(before, after any) {
			// An interrupted watch may have missed that a pod was replaced by another one with the same name.
			if old, pod := before.(*corev1.Pod), after.(*corev1.Pod); old.UID != pod.UID {
				pods.gone(old)
			}
			pods.seen(after.(*corev1.Pod))
		},
		DeleteFunc: func(object any) {
			if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unseen.Obj
			}
			pods.gone(object.(*corev1.Pod))
		},
	})
	must(t, "watching pods", err)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(factory.Shutdown)
	t.Cleanup(stop)
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		t.Fatal("watching pods: the test ended before the first list")
	}
	return pods
}

// Wait waits until wanted returns true for the count.
func (p *Pods) Wait(ctx context.Context, wanted func(PodCount) bool) error {
	for {
		p.mutex.Lock()
		count, changed := p.count, p.changed
		p.mutex.Unlock()
		if wanted(count) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for pods: %d were created, %d exist and %d are ready: %w",
				count.Created, count.Present, count.Ready, context.Cause(ctx))
		}
	}
}

// Count returns the current count.
func (p *Pods) Count() PodCount {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.count
}

func (p *Pods) seen(pod *corev1.Pod) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	wasReady, known := p.ready[pod.UID]
	if !known {
		p.count.Created++
		p.count.Present++
	}
	isReady := slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
	switch {
	case isReady && !wasReady:
		p.count.Ready++
	case wasReady && !isReady:
		p.count.Ready--
	}
	p.ready[pod.UID] = isReady
	p.announce()
}

func (p *Pods) gone(pod *corev1.Pod) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.count.Present--
	if p.ready[pod.UID] {
		p.count.Ready--
	}
	delete(p.ready, pod.UID)
	p.announce()
}

// announce wakes all waiters.
func (p *Pods) announce() {
	close(p.changed)
	p.changed = make(chan struct{})
}
