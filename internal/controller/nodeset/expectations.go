package nodeset

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
)

// expectations remember writes that the cache of pods or the mirror of Slurm does not show yet. A decision that is
// based on a stale one would repeat them. That is harmless; expectations make it rare.
type expectations struct {
	mu   sync.Mutex
	sets map[types.UID]*expected
	// described is when Slurm acknowledged the last description of a NodeSet's Slurm nodes.
	described map[types.UID]time.Time
}

// expected are the pending writes of one NodeSet.
type expected struct {
	created, deleted map[types.UID]time.Time // the deadline of the wait
	written          map[types.UID]string    // the resulting resourceVersion
}

// expectationTimeout limits each wait: a pod may be created and deleted without ever being in the cache.
const expectationTimeout = 30 * time.Second

func (e *expectations) of(set types.UID) *expected {
	if e.sets == nil {
		e.sets = map[types.UID]*expected{}
	}
	if e.sets[set] == nil {
		e.sets[set] = &expected{
			created: map[types.UID]time.Time{}, deleted: map[types.UID]time.Time{}, written: map[types.UID]string{},
		}
	}
	return e.sets[set]
}

func (e *expectations) expectCreated(set, pod types.UID, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(set).created[pod] = now.Add(expectationTimeout)
}

func (e *expectations) expectDeleted(set, pod types.UID, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(set).deleted[pod] = now.Add(expectationTimeout)
}

// expectWritten expects the cache to show a pod as it is after a write.
func (e *expectations) expectWritten(set types.UID, pod *corev1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(set).written[pod.UID] = pod.ResourceVersion
}

// stale reports whether a pod in the cache is older than the last write to it. Its event will follow.
func (e *expectations) stale(set types.UID, pod *corev1.Pod) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected, ok := e.sets[set]
	return ok && older(pod.ResourceVersion, expected.written[pod.UID])
}

// onCurrent returns the actions on pods that are not stale in the cache. The event of the others will follow, and with
// it another plan.
func (r *Reconciler) onCurrent(scope *scope, actions []plan.Action) []plan.Action {
	return slices.DeleteFunc(actions, func(action plan.Action) bool {
		pod := scope.byName[action.Pod.Name] // nil for a node without a pod
		return pod != nil && r.expectations.stale(scope.set.UID, pod)
	})
}

// expectDescribed expects the mirror to show what was acknowledged.
func (e *expectations) expectDescribed(set types.UID, acknowledged time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.described == nil {
		e.described = map[types.UID]time.Time{}
	}
	if acknowledged.After(e.described[set]) {
		e.described[set] = acknowledged
	}
}

// showsDescriptions reports whether Slurm nodes that were read at a time show all descriptions.
func (e *expectations) showsDescriptions(set types.UID, read time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return read.After(e.described[set])
}

// lastDescribed returns when Slurm acknowledged the last description; zero for never.
func (e *expectations) lastDescribed(set types.UID) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.described[set]
}

// older reports whether a resourceVersion is known to be older than another one.
func older(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order < 0
}

// forget drops the expectations of a NodeSet.
func (e *expectations) forget(set types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sets, set)
	delete(e.described, set)
}

// open compares the expectations with the cache, and returns until when to wait for a creation or deletion; zero if for
// none.
func (e *expectations) open(set types.UID, pods []corev1.Pod, now time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected, ok := e.sets[set]
	if !ok {
		return time.Time{}
	}
	present := make(map[types.UID]bool, len(pods))
	written := map[types.UID]string{}
	for i := range pods {
		if pods[i].DeletionTimestamp == nil {
			present[pods[i].UID] = true
		}
		delete(expected.created, pods[i].UID)
		if version := expected.written[pods[i].UID]; older(pods[i].ResourceVersion, version) {
			written[pods[i].UID] = version
		}
	}
	expected.written = written
	var until time.Time
	for _, waits := range []map[types.UID]time.Time{expected.created, expected.deleted} {
		for pod, end := range waits {
			switch _, leaving := expected.deleted[pod]; {
			case !now.Before(end), leaving && !present[pod]:
				delete(waits, pod)
			case end.After(until):
				until = end
			}
		}
	}
	if until.IsZero() && len(written) == 0 {
		delete(e.sets, set)
	}
	return until
}
