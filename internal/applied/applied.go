// Package applied remembers what was last applied to the API server and the resulting object, so that nothing is sent
// twice.
package applied

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"sync"
	"time"
)

// A Memory remembers applied configurations by key. The zero value is empty and ready to use.
type Memory[K comparable] struct {
	mu      sync.Mutex
	records map[K]record
	swept   time.Time
}

const (
	// retention is how long a record is kept that no reconcile uses. Every object is reconciled at least every ten
	// hours, so an unused record belongs to a deleted object; if it does not, the object is applied once more, which
	// changes nothing.
	retention = 24 * time.Hour
	// sweepInterval is the minimum interval between two sweeps for such records.
	sweepInterval = time.Hour
)

// A record holds the digests of an applied configuration and of the resulting object.
type record struct {
	desired, live [sha256.Size]byte
	used          time.Time
}

// Unchanged reports whether desired was the last applied configuration and live is still the resulting object. Both
// must have come from JSON.
func (m *Memory[K]) Unchanged(key K, desired, live any) bool {
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

// Remember records an applied configuration and the resulting object.
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
		maps.DeleteFunc(m.records, func(_ K, known record) bool { return now.Sub(known.used) > retention })
	}
}

// Forget drops the record of a deleted object.
func (m *Memory[K]) Forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, key)
}

// sum returns the digest of a value; JSON sorts its maps.
func sum(value any) [sha256.Size]byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // it came from JSON
	}
	return sha256.Sum256(data)
}
