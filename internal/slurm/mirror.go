package slurm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A Reader is the part of a Client that a mirror uses.
type Reader interface {
	Diag(ctx context.Context) (Diag, error)
	Nodes(ctx context.Context, since Cursor) (NodeList, error)
	Jobs(ctx context.Context, since Cursor) (JobList, error)
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
	if o.Noise == 0 {
		o.Noise = 4 << 10
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
	controllerNow         time.Time     // slurmctld's clock at the last poll
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
		client: client, options: options, pause: options.Fast,
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
		wait := max(m.interval()-m.took, 0)
		if last.Err != nil {
			failures++
			wait = backoff(failures, last.Err)
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

// pace is the least time from the beginning of one look to that of the next one, unless that is demanded. The more nodes there
// are, the longer slurmctld is busy with each look, and it has jobs to start meanwhile.
func (m *Mirror) pace() time.Duration { return min(share*m.took, m.options.Slow) }

// share is which share of the time may be spent on looking while things change: one in so many.
const share = 8

// poll asks for what may have changed, and publishes it. When it is demanded, both lists are asked for.
func (m *Mirror) poll(ctx context.Context, demanded bool) Poll {
	if demanded {
		m.pause = m.options.Fast
	}
	diag, err := m.client.Diag(ctx)
	if err != nil {
		return Poll{Err: err}
	}
	next := &Snapshot{}
	if old := m.Snapshot(); old != nil {
		*next = *old
	}
	if !diag.CountersSince.Equal(m.countersSince) || diag.Now.Before(m.controllerNow) || next.Generation == 0 {
		// Another slurmctld may have another clock, or this one's was set back, and then its times mean something else.
		m.nodeCursor, m.jobCursor, demanded = 0, 0, true
	}
	m.controllerNow = diag.Now
	next.ControllerSince = diag.CountersSince
	changed, err := m.pollJobs(ctx, next, demanded)
	if err != nil {
		return Poll{Diag: diag, Err: err}
	}
	counters := m.signs(ctx, diag)
	now := time.Now()
	sign := len(changed) > 0 || m.pause < m.options.Slow || !maps.Equal(counters, m.counters)
	if demanded || sign || !now.Before(m.quietUntil) {
		changedNodes, err := m.pollNodes(ctx, next)
		if err != nil {
			m.jobCursor, m.jobsQuietUntil = 0, time.Time{} // what was learned of jobs is not published
			return Poll{Diag: diag, Err: err}
		}
		m.counters, m.countersSince = counters, diag.CountersSince
		changed = append(changed, changedNodes...)
	}
	if len(changed) > 0 || next.Generation == 0 {
		next.Generation++
		m.pause = m.options.Fast
	} else {
		m.pause = min(2*m.pause, m.options.Slow)
	}
	m.subscriptions.publish(func() { m.current.Store(next) }, changed...)
	return Poll{Diag: diag, Changed: changed}
}

// pollJobs brings the jobs up to date and returns the nodes whose load has changed.
func (m *Mirror) pollJobs(ctx context.Context, next *Snapshot, demanded bool) ([]string, error) {
	now := time.Now()
	if !demanded && now.Before(m.jobsQuietUntil) {
		return nil, nil
	}
	list, err := m.client.Jobs(ctx, m.jobCursor)
	if err != nil {
		return nil, err
	}
	next.JobsAsOf = now
	if list.Unchanged {
		return nil, nil
	}
	queue, err := count(list.Jobs)
	if err != nil {
		return nil, &Error{Kind: Malformed, Op: "list jobs", Err: err}
	}
	m.jobCursor = list.Cursor
	changed := changedLoads(next.Loads, queue.Loads)
	next.Queue = queue
	// A queue that is busy changes all the time, and its list is long. What matters about jobs shows in the nodes too.
	m.jobsQuietUntil = now.Add(min(time.Duration(list.Bytes)*time.Second/time.Duration(jobsRate), m.options.Slow))
	return changed, nil
}

// jobsRate is how many bytes a second may be spent on jobs, unless they are demanded.
const jobsRate = 1 << 20

// pollNodes brings the nodes up to date and returns those that have changed.
func (m *Mirror) pollNodes(ctx context.Context, next *Snapshot) ([]string, error) {
	now := time.Now()
	list, err := m.client.Nodes(ctx, m.nodeCursor)
	if err != nil {
		return nil, err
	}
	next.NodesAsOf = now
	if list.Unchanged {
		return nil, nil
	}
	m.nodeCursor = list.Cursor
	nodes, changed := shareNodes(next.Nodes, list.Nodes)
	next.Nodes = nodes
	if len(changed) == 0 {
		quiet := time.Duration(float64(list.Bytes) / float64(m.options.Noise) * float64(time.Second))
		m.quietUntil = now.Add(min(quiet, m.options.MaxQuiet))
	}
	return changed, nil
}

// signs are the counters of requests that can change a node, all but those that only ask, and the census if there is
// one. It may fail: then it is no sign.
func (m *Mirror) signs(ctx context.Context, diag Diag) map[string]int64 {
	counters := maps.Clone(diag.RPCs)
	maps.DeleteFunc(counters, func(name string, _ int64) bool {
		return strings.Contains(name, "_INFO") || slices.Contains(questions, name)
	})
	if counter, ok := m.client.(Counter); ok {
		if census, err := counter.Census(ctx); err == nil {
			maps.Copy(counters, census)
		}
	}
	return counters
}

// questions are the requests that only ask, beside all those with INFO in their names.
var questions = []string{
	"REQUEST_PING", "REQUEST_JOB_STATE", "REQUEST_CONFIG", "REQUEST_CONTROL_STATUS", "REQUEST_AUTH_TOKEN",
	"REQUEST_JOB_READY", "REQUEST_BATCH_SCRIPT", "REQUEST_HOSTLIST_EXPANSION",
}
