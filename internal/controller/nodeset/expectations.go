package nodeset

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// expectations remember the pods that were created and deleted and do not show in the cache yet. Decisions that were made on a
// cache that does not show what was just done would do it again. Names and preconditions make that harmless; this makes it rare.
type expectations struct {
	mu   sync.Mutex
	sets map[types.UID]*expected
}

// expected is what one set waits to see.
type expected struct {
	created, deleted map[types.UID]time.Time // until when it is waited for
}

// longest is how long anything is waited for: a pod may come and go without ever being in the cache.
const longest = 30 * time.Second

func (e *expectations) of(set types.UID) *expected {
	if e.sets == nil {
		e.sets = map[types.UID]*expected{}
	}
	if e.sets[set] == nil {
		e.sets[set] = &expected{created: map[types.UID]time.Time{}, deleted: map[types.UID]time.Time{}}
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

// forget drops what is known of a set.
func (e *expectations) forget(set types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sets, set)
}

// open compares with what the cache shows, and returns until when something is waited for; zero when nothing is.
func (e *expectations) open(set types.UID, pods []corev1.Pod, now time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected, ok := e.sets[set]
	if !ok {
		return time.Time{}
	}
	present := make(map[types.UID]bool, len(pods))
	for i := range pods {
		if pods[i].DeletionTimestamp == nil {
			present[pods[i].UID] = true
		}
		delete(expected.created, pods[i].UID)
	}
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
	if until.IsZero() {
		delete(e.sets, set)
	}
	return until
}
