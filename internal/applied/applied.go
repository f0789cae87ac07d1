// Package applied remembers what was last applied to the API server and what came of it, so that nothing is sent twice.
package applied

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"sync"
	"time"
)

// A Memory remembers by key. The zero value remembers nothing.
type Memory[K comparable] struct {
	mu      sync.Mutex
	records map[K]record
	swept   time.Time
}

const (
	// keep is how long something is remembered that no reconcile asks for. Every object is reconciled once in ten hours at the least, so
	// this is something that no longer exists; if it does, it is applied once more, which changes nothing.
	keep = 24 * time.Hour
	// sweepInterval is how often such things are looked for, at most.
	sweepInterval = time.Hour
)

// A record is what was asked for, and what there was then.
type record struct {
	desired, live [sha256.Size]byte
	used          time.Time
}

// Settled tells whether just this was last asked for, and what there is now is still what came of it. Both must have come
// from JSON.
func (m *Memory[K]) Settled(key K, desired, live any) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.records[key]
	if !ok || known.desired != sum(desired) || known.live != sum(live) {
		return false
	}
	known.used = time.Now()
	m.records[key] = known
	return true
}

// Remember notes what was asked for and what came of it.
func (m *Memory[K]) Remember(key K, desired, live any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records == nil {
		m.records = map[K]record{}
	}
	now := time.Now()
	m.records[key] = record{sum(desired), sum(live), now}
	if now.Sub(m.swept) >= sweepInterval {
		m.swept = now
		maps.DeleteFunc(m.records, func(_ K, known record) bool { return now.Sub(known.used) > keep })
	}
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
