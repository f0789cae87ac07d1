// Package applied remembers what was last applied to the API server and what came of it, so that nothing is sent twice.
package applied

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
)

// A Memory remembers by key. The zero value remembers nothing.
type Memory[K comparable] struct {
	mu      sync.Mutex
	records map[K]record
}

// A record is what was asked for, and what there was then.
type record struct {
	desired, live [sha256.Size]byte
}

// Settled tells whether just this was last asked for, and what there is now is still what came of it. Both must have come
// from JSON.
func (m *Memory[K]) Settled(key K, desired, live any) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.records[key]
	return ok && known == record{sum(desired), sum(live)}
}

// Remember notes what was asked for and what came of it.
func (m *Memory[K]) Remember(key K, desired, live any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records == nil {
		m.records = map[K]record{}
	}
	m.records[key] = record{sum(desired), sum(live)}
}

// Forget drops what is remembered of something that is gone.
func (m *Memory[K]) Forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, key)
}

// sum is the digest of a value; JSON sorts its maps.
func sum(value any) [sha256.Size]byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // it came from JSON
	}
	return sha256.Sum256(data)
}
