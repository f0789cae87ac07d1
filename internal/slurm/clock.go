package slurm

import "time"

// A clock converts slurmctld's time to ours. Slurm reports whole seconds and an answer takes a while, so the observed
// offset varies by about a second: small deviations are ignored.
type clock struct {
	// offset is added to slurmctld's time to get ours.
	offset time.Duration
	// since is Diag.CountersSince on our clock.
	since time.Time

	counters time.Time // the Diag.CountersSince that since was computed from
}

// jitter is the deviation between two observations of the same offset that is ignored.
const jitter = 2 * time.Second

// observe updates the clock from an answer of slurmctld that arrived at now, on our clock.
func (c *clock) observe(diag Diag, now time.Time) {
	if offset := now.Sub(diag.Now); (offset - c.offset).Abs() > jitter {
		c.offset = offset
	}
	if diag.CountersSince.IsZero() {
		c.since, c.counters = time.Time{}, time.Time{}
		return
	}
	since := now.Add(diag.CountersSince.Sub(diag.Now))
	if !diag.CountersSince.Equal(c.counters) || since.Sub(c.since).Abs() > jitter {
		c.since, c.counters = since, diag.CountersSince
	}
}

// localTime converts a time of slurmctld to our clock.
func localTime(controllerTime time.Time, offset time.Duration) time.Time {
	if controllerTime.IsZero() {
		return controllerTime
	}
	return controllerTime.Add(offset)
}
