package nodeset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// eventDelays are how long events of pods are collected before a NodeSet is reconciled. Events come by the hundred, and
// each reconcile reads and plans all pods: without a delay that grows with them, the operator would spend most of the
// time on a large NodeSet while its pods start. The zero value has the shortest delay for each.
type eventDelays struct {
	mu    sync.Mutex
	bySet map[types.NamespacedName]time.Duration
}

const (
	minEventDelay, maxEventDelay = 200 * time.Millisecond, 2 * time.Second
	// eventDelayPerPod is some ten times what a reconcile spends on each pod.
	eventDelayPerPod = 100 * time.Microsecond
)

// update sets the delay of a NodeSet with this many pods.
func (d *eventDelays) update(set types.NamespacedName, pods int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bySet == nil {
		d.bySet = map[types.NamespacedName]time.Duration{}
	}
	if delay := min(time.Duration(pods)*eventDelayPerPod, maxEventDelay); delay > minEventDelay {
		d.bySet[set] = delay
	} else {
		delete(d.bySet, set)
	}
}

// of returns the delay of a NodeSet.
func (d *eventDelays) of(set types.NamespacedName) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(d.bySet[set], minEventDelay)
}
