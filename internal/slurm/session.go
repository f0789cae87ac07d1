package slurm

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A Session is a client of one cluster and the mirror that polls through it.
type Session struct {
	Client Client
	Mirror *Mirror

	identity string
	stop     context.CancelFunc

	mu        sync.Mutex
	status    Status
	nextCount time.Time // earliest next CountJobs
}

// A Status is the state of a session.
type Status struct {
	// Reachable reports whether the last attempt to reach slurmctld succeeded.
	Reachable bool
	// Since is when Reachable last changed.
	Since time.Time
	// Err is why slurmctld is not reachable; nil before the first attempt.
	Err error
	// NextAttempt is the latest time of the next attempt.
	NextAttempt time.Time
	// Info is what was negotiated with slurmrestd.
	Info Info
	// Diag holds the last statistics of slurmctld.
	Diag Diag
	// Queue describes the last read of the jobs.
	Queue QueueReport
}

// Status returns the current status.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// UpdateNodes changes Slurm nodes and makes the mirror poll soon. It returns when the change was acknowledged: only a
// snapshot that was taken after that shows it.
func (s *Session) UpdateNodes(ctx context.Context, names []string, update NodeUpdate) (acknowledged time.Time,
	err error) {
	defer s.Mirror.Nudge(names...)
	err = s.Client.UpdateNodes(ctx, names, update)
	return time.Now(), err
}

// DeleteNodes deletes node records and makes the mirror poll soon.
func (s *Session) DeleteNodes(ctx context.Context, names []string) error {
	defer s.Mirror.Nudge()
	return s.Client.DeleteNodes(ctx, names)
}

// Limits of CountJobs.
const (
	// maxCounted is the number of jobs up to which jobs are counted one by one: slurmrestd builds the whole answer in
	// memory and needs a second per thousand jobs.
	maxCounted = 20000
	// countTimeout is longer than that of other calls, and shorter than that of a reconcile.
	countTimeout = 25 * time.Second
	// countShare limits the time spent on counting to 1/countShare.
	countShare = 20
)

// CountJobs counts the jobs of all partitions and nodes from the list of all jobs. That list is long if the mirror's
// queue is Partial, so this is for rare decisions, and it is rate-limited. No job is kept in memory.
func (s *Session) CountJobs(ctx context.Context) (Queue, error) {
	began := time.Now()
	if err := s.mayCount(began); err != nil {
		return Queue{}, &Error{Kind: TooLarge, Op: "count jobs", Err: err}
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.nextCount = began.Add(countShare * time.Since(began))
	}()
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	queue := newQueue()
	if err := s.Client.EachJob(ctx, func(job *Job) error { return queue.count(job, 0) }); err != nil {
		return Queue{}, err
	}
	return queue, nil
}

// mayCount returns why the jobs cannot be counted now, or nil, which blocks other counts until this one is done.
func (s *Session) mayCount(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if jobs := s.status.Queue.Jobs; jobs > maxCounted {
		return fmt.Errorf(
			"the cluster has %d jobs, and at most %d are counted one by one; wait for some to end, or cancel them", jobs, maxCounted)
	}
	if now.Before(s.nextCount) {
		return fmt.Errorf("they were counted recently; they are counted again after %s",
			s.nextCount.UTC().Format(time.RFC3339))
	}
	s.nextCount = now.Add(countTimeout)
	return nil
}

// run polls until the context is done and publishes changes of the session and of nodes.
func (s *Session) run(ctx context.Context, publish func(...Event), cluster Key) {
	if closer, ok := s.Client.(interface{ Close() }); ok {
		defer closer.Close()
	}
	s.Mirror.Run(ctx, func(poll Poll) {
		events := make([]Event, 0, len(poll.Changed)+1)
		for _, node := range poll.Changed {
			events = append(events, Event{cluster, node})
		}
		if s.record(poll) {
			events = append(events, Event{Cluster: cluster})
		}
		publish(events...)
	})
}

// record stores the result of a poll and reports whether the status has changed, or slurmctld has restarted.
func (s *Session) record(poll Poll) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.status.NextAttempt.IsZero()
	reachable, info := poll.Err == nil, s.Client.Info()
	restarted := reachable && !poll.Diag.CountersSince.Equal(s.status.Diag.CountersSince)
	changed := first || restarted || reachable != s.status.Reachable || info != s.status.Info ||
		Result(poll.Err) != Result(s.status.Err)
	if reachable != s.status.Reachable {
		s.status.Since = time.Now()
	}
	s.status.Reachable, s.status.Err, s.status.Info, s.status.NextAttempt = reachable, poll.Err, info, poll.Next
	if reachable {
		s.status.Diag, s.status.Queue = poll.Diag, poll.Queue
	}
	return changed
}
