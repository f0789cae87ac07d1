package nodeset

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// expectations remember what was done to pods and does not show in the cache yet. Decisions that were made on a cache that does
// not show what was just done would do it again. Names and preconditions make that harmless; this makes it rare.
type expectations struct {
	mu   sync.Mutex
	sets map[types.UID]*expected
}

// expected is what one set waits to see.
type expected struct {
	created, deleted map[types.UID]time.Time // until when it is waited for
	written          map[types.UID]string    // the resource version that came of it
}

// longest is how long anything is waited for: a pod may come and go without ever being in the cache.
const longest = 30 * time.Second

func (e *expectations) of(set types.UID) *expected {
	if e.sets == nil {
		e.sets = map[types.UID]*expected{}
	}
	if e.sets[set] == nil {
		e.sets[set] = &expected{created: map[types.UID]time.Time{}, deleted: map[types.UID]time.Time{}, written: map[types.UID]string{}}
	}
	return e.sets[set]
}

func (e *expectations) expectCreated(set, pod types.UID, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(set).created[pod] = now.Add(longest)
}

func (e *expectations) expectDeleted(set, pod types.UID, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(set).deleted[pod] = now.Add(longest)
}

// expectWritten expects to see a pod as it is after something was written to it.
func (e *expectations) expectWritten(set types.UID, pod *corev1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(set).written[pod.UID] = pod.ResourceVersion
}

// outrun tells whether a pod in the cache is older than what was written to it. Its event is on the way.
func (e *expectations) outrun(set types.UID, pod *corev1.Pod) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected, ok := e.sets[set]
	return ok && older(pod.ResourceVersion, expected.written[pod.UID])
}

// older tells whether a version is known to be older than another one.
func older(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order < 0
}

// forget drops what is known of a set.
func (e *expectations) forget(set types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sets, set)
}

// open compares with what the cache shows, and returns until when a creation or deletion is waited for; zero when none is.
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
