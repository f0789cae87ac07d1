package slurm

import (
	"errors"
	"math/rand/v2"
	"time"
)

// A Backoff is how long to wait between attempts after failures.
type Backoff struct {
	// First is the wait after one failure. It doubles with each further one.
	First time.Duration
	// MaxOutage bounds the wait for what comes back by itself.
	MaxOutage time.Duration
	// MaxRefusal bounds the wait for what a person has to repair: a token or a version. A session with other settings starts at once.
	MaxRefusal time.Duration
}

// DefaultBackoff has a cluster recovered within a minute after an outage.
var DefaultBackoff = Backoff{First: time.Second, MaxOutage: 30 * time.Second, MaxRefusal: 15 * time.Minute}

// after is how long to wait after a number of failures in a row, the last of which is err. Half of it is random, so
// that clusters that failed together do not come back together.
func (b Backoff) after(failures int, err error) time.Duration {
	longest := b.MaxOutage
	if errors.Is(err, Unauthorized) || errors.Is(err, Unsupported) || errors.Is(err, Rejected) {
		longest = b.MaxRefusal
	}
	wait := longest
	if doublings := failures - 1; doublings < 20 {
		wait = min(b.First<<doublings, longest)
	}
	return wait/2 + rand.N(wait/2)
}
