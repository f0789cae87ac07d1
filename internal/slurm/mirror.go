package slurm

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A Reader is the part of a Client that a mirror uses.
type Reader interface {
	Diag(ctx context.Context) (Diag, error)
	Nodes(ctx context.Context, since Cursor) (NodeList, error)
	Jobs(ctx context.Context, since Cursor) (JobList, error)
	JobStates(ctx context.Context, each func(JobState) error) (received int64, err error)
	Job(ctx context.Context, id int64) (Job, error)
}

// A Counter is a Reader that can also count nodes by state, in whatever way: a mirror only looks whether it has changed.
type Counter interface {
	Census(ctx context.Context) (map[string]int64, error)
}

// MirrorOptions say how often a mirror asks.
type MirrorOptions struct {
	// Fast is the interval after a change, a nudge or a demand. It doubles while nothing changes, up to Slow, the interval at rest.
	Fast, Slow time.Duration
	// Noise is how many bytes a second may on average be spent on lists that turn out to bring nothing new.
	Noise int64
	// MaxQuiet is the longest time without a list when there is no sign of a change.
	MaxQuiet time.Duration
	// MaxListedJobs is for how many jobs the mirror reads the list of all jobs. With more of them it reads their states, and
	// the details of only some jobs; see ledger. Negative is never.
	MaxListedJobs int
	// Backoff is how long to wait between attempts after failures; DefaultBackoff when zero.
	Backoff Backoff
}

// withDefaults fills in what is not set.
func (o MirrorOptions) withDefaults() MirrorOptions {
	set := func(value *time.Duration, other time.Duration) {
		if *value == 0 {
			*value = other
		}
	}
	set(&o.Fast, time.Second)
	set(&o.Slow, 10*time.Second)
	set(&o.MaxQuiet, 30*time.Minute)
	set(&o.Backoff.First, DefaultBackoff.First)
	set(&o.Backoff.MaxOutage, DefaultBackoff.MaxOutage)
	set(&o.Backoff.MaxRefusal, DefaultBackoff.MaxRefusal)
	if o.Noise == 0 {
		o.Noise = 4 << 10
	}
	if o.MaxListedJobs == 0 {
		o.MaxListedJobs = 1000
	}
	return o
}

// A Mirror polls one cluster for everybody.
//
// Slurm has no events. It can say that no node has changed, which is cheap, but when any node has, it sends all of them;
// and the answers of nodes to slurmctld's pings count as changes. So in a large cluster that is at rest, the plain
// question would move megabytes every few seconds, to learn nothing. A mirror therefore asks slurmctld for its counters
// first, a few kilobytes: nothing that a person, a job or a slurmd does to a node leaves them as they are. While they
// stand still, and nobody has demanded to know, lists that brought nothing new are spaced out so that they cost no more
// than a set number of bytes a second. What slurmctld does to nodes by itself, above all to declare them down, then shows
// up late, at most after MaxQuiet, unless the client is a Counter. See docs/slurm-client.md for figures.
//
// The counters only decide when to ask. What a snapshot says, and since when, comes from the lists alone.
//
// The list of all jobs is long: five kilobytes a job, and any user can submit thousands. A mirror therefore reads the states of
// the jobs first, some forty bytes a job, and reads the list only while it is short; see ledger for what it does otherwise.
type Mirror struct {
	client  Reader
	options MirrorOptions

	current       atomic.Pointer[Snapshot]
	subscriptions subscriptions[string]
	nudges        chan struct{}
	retries       chan struct{}
	demands       chan chan<- error // where to say that there is a snapshot that is all new
	stopped       chan struct{}     // closed at the end of Run

	// The rest belongs to the goroutine in Run.
	nodeCursor, jobCursor Cursor
	counters              map[string]int64 // as of the last list of nodes
	countersSince         time.Time
	controllerNow         time.Time        // slurmctld's clock at the last poll
	clock                 clock            // how slurmctld's clock differs from ours
	weighed               map[string]int64 // the counters when the jobs were last counted
	ledger                ledger
	quietUntil            time.Time     // no list of nodes before this without a sign
	jobsQuietUntil        time.Time     // no list of jobs before this without a demand
	pause                 time.Duration // between two looks, Fast to Slow
	began                 time.Time     // when the last look began
	took                  time.Duration
}

// NewMirror makes a mirror that knows nothing until Run.
func NewMirror(client Reader, options MirrorOptions) *Mirror {
	options = options.withDefaults()
	return &Mirror{
		client: client, options: options, pause: options.Fast, ledger: ledger{client: client},
		nudges: make(chan struct{}, 1), retries: make(chan struct{}, 1), demands: make(chan chan<- error), stopped: make(chan struct{}),
	}
}

// Snapshot is what is known; nil when nothing is.
func (m *Mirror) Snapshot() *Snapshot { return m.current.Load() }

// Nudge makes the mirror look as soon as its pace allows, and often for a while: something has changed or is about to. It never waits.
func (m *Mirror) Nudge() {
	select {
	case m.nudges <- struct{}{}:
	default: // there is one already
	}
}

// Retry makes the mirror look at once although it failed before: there is reason to believe that the cluster answers
// again. While it does not fail, this does nothing. It never waits.
func (m *Mirror) Retry() {
	select {
	case m.retries <- struct{}{}:
	default: // there is one already
	}
}

// Refresh returns a snapshot of which everything was asked for after the call, or why there is none. While the cluster
// does not answer, it fails at once instead of asking again and again.
func (m *Mirror) Refresh(ctx context.Context) (*Snapshot, error) {
	done := make(chan error, 1)
	select {
	case m.demands <- done:
	case <-m.stopped:
		return nil, errStopped
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case err := <-done:
		if err != nil {
			return nil, err
		}
		return m.Snapshot(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// errStopped is why a mirror that has ended knows nothing new.
var errStopped = errors.New("the session with Slurm has ended")

// Subscribe starts to collect the names of nodes that have changed. All that are known count as changed.
func (m *Mirror) Subscribe() *Subscription[string] {
	return m.subscriptions.join(func() []string {
		if snapshot := m.Snapshot(); snapshot != nil {
			return names(snapshot.Nodes)
		}
		return nil
	})
}

func names(nodes []*Node) []string {
	all := make([]string, len(nodes))
	for i, node := range nodes {
		all[i] = node.Name
	}
	return all
}

// A Poll is how an attempt of a mirror to look at its cluster ended.
type Poll struct {
	Diag    Diag
	Changed []string // nodes
	Err     error
	// Queue is how the jobs were read.
	Queue QueueReport
	// Next is when the next attempt is due at the latest.
	Next time.Time
}

// shortest is the shortest time between two polls, however much they are in demand.
const shortest = 50 * time.Millisecond

// Run polls until the context ends, and reports each attempt. It may be called once.
func (m *Mirror) Run(ctx context.Context, report func(Poll)) {
	defer close(m.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var waiting []chan<- error // who demands a snapshot
	failures := 0
	var last Poll
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case done := <-m.demands:
			if failures > 0 {
				done <- last.Err
				continue
			}
			waiting = append(waiting, done)
		case <-m.nudges:
			if failures > 0 {
				continue
			}
			m.pause = m.options.Fast
			if early := m.pace() - time.Since(m.began); early > 0 {
				timer.Reset(early)
				continue
			}
		case <-m.retries:
			if failures == 0 {
				continue
			}
		case <-timer.C:
		}
		waiting = append(waiting, m.gather(ctx, shortest)...)
		m.began = time.Now()
		last = m.poll(ctx, len(waiting) > 0)
		m.took = time.Since(m.began)
		for _, done := range waiting {
			done <- last.Err
		}
		waiting = nil
		last.Changed = append(last.Changed, m.fill(ctx)...)
		last.Queue = m.ledger.report()
		wait := max(m.interval()-m.took, 0)
		if last.Err != nil {
			failures++
			wait = m.options.Backoff.after(failures, last.Err)
		} else {
			failures = 0
		}
		last.Next = time.Now().Add(wait)
		report(last)
		timer.Reset(wait)
	}
}

// gather waits a little and takes the demands that come in the meantime, to serve them all with one poll.
func (m *Mirror) gather(ctx context.Context, length time.Duration) []chan<- error {
	var more []chan<- error
	timer := time.NewTimer(length)
	defer timer.Stop()
	for {
		select {
		case done := <-m.demands:
			more = append(more, done)
		case <-timer.C:
			return more
		case <-ctx.Done():
			return more
		}
	}
}

// interval is the time from the beginning of one look to that of the next one, unless that is demanded.
func (m *Mirror) interval() time.Duration { return max(m.pause, m.pace()) }

// pace is the least time from the beginning of one look to that of the next one, unless that is demanded. The more nodes and jobs there
// are, the longer slurmrestd and slurmctld are busy with each look, and slurmctld has jobs to start meanwhile.
func (m *Mirror) pace() time.Duration {
	return min(share*m.took, max(m.options.Slow, mostShare*m.took))
}

// share is which share of the time may be spent on looking while things change: one in so many. mostShare is which share may be spent on
// looking at all, however slow it is.
const share, mostShare = 8, 4
