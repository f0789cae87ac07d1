package slurm

import "time"

// A clock relates slurmctld's clock to ours. Slurm tells whole seconds and an answer takes a while, so what is observed of one and
// the same difference varies by about a second: a value that is about as before stays.
type clock struct {
	// offset is what to add to a time of slurmctld's to have it on our clock.
	offset time.Duration
	// since is Diag.CountersSince on our clock.
	since time.Time

	counters time.Time // Diag.CountersSince that since stands for
}

// jitter is by how much two observations of one difference may differ.
const jitter = 2 * time.Second

// observe takes note of what slurmctld said at a time on our clock.
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

// ours is a time of slurmctld's on our clock.
func ours(theirs time.Time, offset time.Duration) time.Time {
	if theirs.IsZero() {
		return theirs
	}
	return theirs.Add(offset)
}
