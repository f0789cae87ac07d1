package slurm

import (
	"errors"
	"math/rand/v2"
	"time"
)

// A Backoff is the delay between attempts after failures.
type Backoff struct {
	// First is the delay after the first failure. It doubles with each further one.
	First time.Duration
	// MaxOutage is the maximum delay for failures that recover without intervention.
	MaxOutage time.Duration
	// MaxRefusal is the maximum delay for failures that a user has to fix: a token or a version. A session with new
	// settings connects immediately.
	MaxRefusal time.Duration
}

// DefaultBackoff reconnects to a cluster within a minute after an outage.
var DefaultBackoff = Backoff{First: time.Second, MaxOutage: 30 * time.Second, MaxRefusal: 15 * time.Minute}

// after returns the delay after a number of consecutive failures, the last of which is err. Half of it is random, so
// that clusters that failed together are not retried together.
func (b Backoff) after(failures int, err error) time.Duration {
	limit := b.MaxOutage
	if errors.Is(err, Unauthorized) || errors.Is(err, Unsupported) || errors.Is(err, Rejected) {
		limit = b.MaxRefusal
	}
	wait := limit
	if doublings := failures - 1; doublings < 20 {
		wait = min(b.First<<doublings, limit)
	}
	return wait/2 + rand.N(wait/2)
}
