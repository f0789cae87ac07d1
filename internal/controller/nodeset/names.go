package nodeset

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// names remember which pod was last created for each Slurm node name, until the cache must have it, so that two
// NodeSets that are reconciled at the same time do not create two pods for one Slurm node. Two generations of names
// make it cheap to forget old ones.
type names struct {
	mu                sync.Mutex
	current, previous map[types.NamespacedName]string
	since             time.Time // when current began
	// waiting are the NodeSets that were refused a name, by that name.
	waiting map[types.NamespacedName]map[types.NamespacedName]bool
}

// wait notes that a NodeSet was refused a name.
func (n *names) wait(name, set types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = map[types.NamespacedName]map[types.NamespacedName]bool{}
	}
	if n.waiting[name] == nil {
		n.waiting[name] = map[types.NamespacedName]bool{}
	}
	n.waiting[name][set] = true
}

// free returns the NodeSets that wait for a name, and forgets them.
func (n *names) free(name types.NamespacedName) []types.NamespacedName {
	n.mu.Lock()
	defer n.mu.Unlock()
	sets := slices.Collect(maps.Keys(n.waiting[name]))
	delete(n.waiting, name)
	delete(n.current, name)
	delete(n.previous, name)
	return sets
}

// take takes a name for a pod unless another pod has it, and returns the pod that has it.
func (n *names) take(name types.NamespacedName, pod string, now time.Time) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.current == nil || now.Sub(n.since) >= expectationTimeout {
		n.current, n.previous, n.since = map[types.NamespacedName]string{}, n.current, now
	}
	for _, generation := range []map[types.NamespacedName]string{n.current, n.previous} {
		if holder, taken := generation[name]; taken && holder != pod {
			return holder
		}
	}
	n.current[name] = pod
	return pod
}
