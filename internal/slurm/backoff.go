package slurm

import (
	"errors"
	"math/rand/v2"
	"time"
)

// The times between attempts after failures.
const (
	firstBackoff = time.Second
	// maxOutage bounds the wait for what comes back by itself: a cluster has to be in order again within a minute after
	// an outage.
	maxOutage = 30 * time.Second
	// maxRefusal bounds the wait for what somebody has to mend: a token or a version. A session with other settings
	// starts at once.
	maxRefusal = 15 * time.Minute
)

// backoff is how long to wait after a number of failures in a row, the last of which is err. Half of it is random, so
// that clusters that failed together do not come back together.
func backoff(failures int, err error) time.Duration {
	longest := maxOutage
	if errors.Is(err, Unauthorized) || errors.Is(err, Unsupported) || errors.Is(err, Rejected) {
		longest = maxRefusal
	}
	wait := longest
	if doublings := failures - 1; doublings < 20 {
		wait = min(firstBackoff<<doublings, longest)
	}
	return wait/2 + rand.N(wait/2)
}
