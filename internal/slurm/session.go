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
	nextCount time.Time // no CountJobs before this
}

// A Status is how a session does.
type Status struct {
	// Reachable tells whether the last attempt to reach slurmctld succeeded.
	Reachable bool
	// Since is when that began to be so.
	Since time.Time
	// Err is why it is not reachable; nil before the first attempt.
	Err error
	// NextAttempt is when it is tried again, at the latest.
	NextAttempt time.Time
	// Info is what was agreed on with slurmrestd.
	Info Info
	// Diag is what slurmctld last said about itself.
	Diag Diag
	// Queue is how the jobs were last read.
	Queue QueueReport
}

// Status is how the session does now.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// UpdateNodes changes nodes and makes the mirror look at the effect. It returns when the change was acknowledged: only a
// snapshot that was taken after that shows it.
func (s *Session) UpdateNodes(ctx context.Context, names []string, update NodeUpdate) (acknowledged time.Time, err error) {
	defer s.Mirror.Nudge()
	err = s.Client.UpdateNodes(ctx, names, update)
	return time.Now(), err
}

// DeleteNodes deletes the records of nodes and makes the mirror look at the effect.
func (s *Session) DeleteNodes(ctx context.Context, names []string) error {
	defer s.Mirror.Nudge()
	return s.Client.DeleteNodes(ctx, names)
}

// Limits of CountJobs.
const (
	// maxCounted is how many jobs are counted one by one: slurmrestd makes the whole answer in memory, and needs a second for each
	// thousand jobs.
	maxCounted = 20000
	// countTime is longer than other calls may take, and shorter than what a reconcile may.
	countTime = 25 * time.Second
	// countShare is which share of the time may be spent on counting: one in so many.
	countShare = 20
)

// CountJobs counts the jobs of all partitions and nodes, from the list of all jobs. That list is long where the mirror's queue is
// Partial, so this is for rare decisions, and it refuses to be asked too often. None of the jobs is kept in memory.
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
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	queue := Queue{Loads: map[string]Load{}, Partitions: map[string]int{}}
	if err := s.Client.EachJob(ctx, func(job *Job) error { return queue.count(job, 0) }); err != nil {
		return Queue{}, err
	}
	return queue, nil
}

// mayCount says why the jobs are not counted now; nil when they are, and others then have to wait.
func (s *Session) mayCount(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if jobs := s.status.Queue.Jobs; jobs > maxCounted {
		return fmt.Errorf("the cluster has %d jobs, and at most %d are counted one by one; wait for some to end, or cancel them", jobs, maxCounted)
	}
	if now.Before(s.nextCount) {
		return fmt.Errorf("they were counted a short time ago; they are counted again after %s", s.nextCount.UTC().Format(time.RFC3339))
	}
	s.nextCount = now.Add(countTime)
	return nil
}

// run polls until the context ends. Sessions that come and go, and nodes that change, are told of.
func (s *Session) run(ctx context.Context, tell func(...Event), cluster Key) {
	if closer, ok := s.Client.(interface{ Close() }); ok {
		defer closer.Close()
	}
	s.Mirror.Run(ctx, func(poll Poll) {
		events := make([]Event, 0, len(poll.Changed)+1)
		for _, node := range poll.Changed {
			events = append(events, Event{cluster, node})
		}
		if s.note(poll) {
			events = append(events, Event{Cluster: cluster})
		}
		tell(events...)
	})
}

// note keeps how a poll went, and tells whether that is news.
func (s *Session) note(poll Poll) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.status.NextAttempt.IsZero()
	reachable, info := poll.Err == nil, s.Client.Info()
	news := first || reachable != s.status.Reachable || info != s.status.Info || Result(poll.Err) != Result(s.status.Err)
	if reachable != s.status.Reachable {
		s.status.Since = time.Now()
	}
	s.status.Reachable, s.status.Err, s.status.Info, s.status.NextAttempt = reachable, poll.Err, info, poll.Next
	if reachable {
		s.status.Diag, s.status.Queue = poll.Diag, poll.Queue
	}
	return news
}
