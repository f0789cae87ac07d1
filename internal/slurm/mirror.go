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
	Node(ctx context.Context, name string) (Node, error)
	Jobs(ctx context.Context, since Cursor) (JobList, error)
	JobStates(ctx context.Context, each func(JobState) error) (received int64, err error)
	Job(ctx context.Context, id int64) (Job, error)
}

// A Counter is a Reader that can also count nodes by state. The keys are opaque: a mirror only checks whether the
// counts have changed.
type Counter interface {
	Census(ctx context.Context) (map[string]int64, error)
}

// MirrorOptions set how often a mirror polls.
type MirrorOptions struct {
	// Fast is the interval after a change or a nudge. It doubles while nothing changes, up to Slow, the interval in
	// steady state.
	Fast, Slow time.Duration
	// Noise limits the average bytes per second spent on lists that contain no change.
	Noise int64
	// MaxQuiet is the longest time without a list if nothing indicates a change.
	MaxQuiet time.Duration
	// MaxListedJobs is the number of jobs up to which the mirror lists all jobs. If there are more, it reads their
	// states, and the details of only some jobs; see ledger. If negative, it never lists them.
	MaxListedJobs int
	// Backoff is the delay between attempts after failures; DefaultBackoff if zero.
	Backoff Backoff
}

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

// A Mirror polls one cluster for all controllers.
//
// Slurm has no events. It can report cheaply that no node has changed, but if any node has, it sends all of them, and
// every answer of a slurmd to a ping counts as a change. In a large idle cluster, plain polling would transfer
// megabytes every few seconds without news. A mirror therefore reads slurmctld's counters first, a few kilobytes:
// everything that a user, a job or a slurmd does to a node changes them. While they do not change and no refresh is
// requested, lists without news are spaced out to stay within a byte rate. Changes that slurmctld makes by itself,
// above all marking nodes down, then show up late, after at most MaxQuiet, unless the client is a Counter or a
// ChangeTracker. See docs/slurm-client.md for figures.
//
// The counters only decide when to poll. The contents and times of a snapshot come from the lists and from reads of
// single nodes alone.
//
// A list of all nodes keeps slurmrestd busy for seconds in a large cluster, so lists take only a share of the time.
// Between two of them, a mirror reads single nodes: those that the operator has changed or waits for, and those whose
// jobs have changed. A refresh of a few nodes reads only these, too. If the client is a ChangeTracker, the other nodes
// that have changed are also read alone, and lists are rare.
//
// The list of all jobs is long: five kilobytes per job, and any user can submit thousands. A mirror therefore reads the
// job states first, some forty bytes per job, and reads the list only while it is short; see ledger for the
// alternative.
type Mirror struct {
	client  Reader
	options MirrorOptions

	current       atomic.Pointer[Snapshot]
	subscriptions subscriptions[string]
	nudges        chan struct{}
	expected      chan struct{}
	retries       chan struct{}
	refreshes     chan refresh
	stopped       chan struct{} // closed when Run returns
	marked        marks

	// The fields below are only used by the goroutine in Run.
	nodeCursor, jobCursor Cursor
	counters              map[string]int64 // at the last list of nodes
	countersSince         time.Time
	controllerNow         time.Time        // slurmctld's clock at the last poll
	clock                 clock            // offset of slurmctld's clock from ours
	countersAtCount       map[string]int64 // the counters of jobs when the jobs were last counted
	countersAtJobs        map[string]int64 // the same when they were last listed
	jobsRead              time.Time        // the last list of jobs
	ledger                ledger
	quietUntil            time.Time     // earliest next list of nodes, unless the counters change
	jobsQuietUntil        time.Time     // earliest next list of jobs, unless refreshResult
	pause                 time.Duration // current interval, Fast to Slow
	burst                 bool          // many nodes changed at the last poll
	growing               bool          // many nodes are new: the last list showed them, or they wait for the next one
	began                 time.Time     // start of the last poll
	took                  time.Duration // of the last poll, without what counts apart
	apart                 time.Duration // of the last poll: lists of nodes, and the tracker, have limits of their own
	listed                time.Time     // start of the last list of nodes
	listTook              time.Duration
	tracking              trackingState
}

// A refresh is a request for a snapshot that is read after it: of some Slurm nodes or, if nil, of everything.
type refresh struct {
	nodes []string
	done  chan<- refreshResult
}

// A refreshResult is the answer to a refresh.
type refreshResult struct {
	snapshot *Snapshot
	err      error
}

// NewMirror returns a mirror that has no snapshot until Run.
func NewMirror(client Reader, options MirrorOptions) *Mirror {
	options = options.withDefaults()
	return &Mirror{
		client: client, options: options, pause: options.Fast, ledger: ledger{client: client},
		nudges: make(chan struct{}, 1), expected: make(chan struct{}, 1), retries: make(chan struct{}, 1),
		refreshes: make(chan refresh), stopped: make(chan struct{}),
	}
}

// Snapshot returns the latest snapshot; nil before the first successful poll.
func (m *Mirror) Snapshot() *Snapshot { return m.current.Load() }

// Nudge makes the mirror poll as soon as its pace allows, and frequently for a while: something has changed or is about
// to, above all the given Slurm nodes. It never blocks.
func (m *Mirror) Nudge(nodes ...string) {
	m.marked.add(nodes)
	select {
	case m.nudges <- struct{}{}:
	default: // there is one already
	}
}

// Expect makes the mirror poll frequently for a while, because Slurm nodes are about to change, for example because
// slurmds are about to register. While many of them change, more of them share a poll. It never blocks.
func (m *Mirror) Expect(nodes ...string) {
	m.marked.add(nodes)
	select {
	case m.expected <- struct{}{}:
	default: // there is one already
	}
}

// Retry makes a failing mirror poll immediately, without waiting for the backoff: there is reason to believe that the
// cluster answers again. It does nothing if the mirror is not failing. It never blocks.
func (m *Mirror) Retry() {
	select {
	case m.retries <- struct{}{}:
	default: // there is one already
	}
}

// Refresh returns a snapshot of which everything was read after the call, or an error. While the cluster is not
// reachable, it fails immediately instead of polling again.
func (m *Mirror) Refresh(ctx context.Context) (*Snapshot, error) { return m.refresh(ctx, nil) }

// RefreshNodes returns a snapshot of which the jobs and the given Slurm nodes were read after the call, or an error. It
// reads single nodes if that is cheaper than the list of all: Snapshot.NodeAsOf is the time of each. Without nodes it
// is the same as Refresh.
func (m *Mirror) RefreshNodes(ctx context.Context, nodes []string) (*Snapshot, error) {
	return m.refresh(ctx, nodes)
}

func (m *Mirror) refresh(ctx context.Context, nodes []string) (*Snapshot, error) {
	done := make(chan refreshResult, 1)
	select {
	case m.refreshes <- refresh{nodes, done}:
	case <-m.stopped:
		return nil, errStopped
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case answer := <-done:
		return answer.snapshot, answer.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// errStopped is returned after Run has ended.
var errStopped = errors.New("the Slurm session is closed")

// Subscribe collects the names of Slurm nodes that change, starting with all known nodes.
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

// A Poll is the result of one poll.
type Poll struct {
	Diag    Diag
	Changed []string // names of Slurm nodes
	Err     error
	// Unlisted says that nodes may have changed that were not read, because a list would be too early.
	Unlisted bool
	// Queue describes how the jobs were read.
	Queue QueueReport
	// Next is the latest time of the next poll.
	Next time.Time
}

// expectedWithin is how long an expected change waits for others, to share a poll with them.
const expectedWithin = time.Second

// batchWindow is how long a poll waits for further refreshes; it is also the minimum time between two polls.
const batchWindow = 50 * time.Millisecond

// Run polls until the context is done, and reports each poll. It may be called only once.
func (m *Mirror) Run(ctx context.Context, report func(Poll)) {
	defer close(m.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var waiting []refresh
	failures := 0
	var last Poll
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case request := <-m.refreshes:
			if failures > 0 {
				request.done <- refreshResult{err: last.Err}
				continue
			}
			waiting = append(waiting, request)
		case <-m.nudges:
			if failures > 0 || m.hasten(timer, max(m.pace(), min(m.spacing(m.listTook), m.options.Fast))) {
				continue
			}
		case <-m.expected:
			if failures > 0 || m.burst || m.hasten(timer, max(m.pace(), min(m.options.Fast, expectedWithin))) {
				continue
			}
		case <-m.retries:
			if failures == 0 {
				continue
			}
		case <-timer.C:
		}
		waiting = append(waiting, m.gather(ctx, batchWindow)...)
		m.began = time.Now()
		last = m.poll(ctx, demandOf(waiting))
		m.answer(waiting, last.Err)
		waiting = nil
		last.Changed = append(last.Changed, m.fill(ctx)...)
		last.Queue = m.ledger.report()
		wait := max(m.untilNext(last)-time.Since(m.began), 0)
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

// hasten makes polls frequent. If less than an interval has passed since the last poll, it sets the timer to the end of
// the interval, and returns true.
func (m *Mirror) hasten(timer *time.Timer, interval time.Duration) (early bool) {
	m.pause = m.options.Fast
	rest := interval - time.Since(m.began)
	if rest > 0 {
		timer.Reset(rest)
	}
	return rest > 0
}

// answer answers callers of Refresh with the snapshot of the last poll.
func (m *Mirror) answer(waiting []refresh, err error) {
	result := refreshResult{m.Snapshot(), err}
	if err != nil {
		result.snapshot = nil
	}
	for _, request := range waiting {
		request.done <- result
	}
}

// gather waits a little and collects the refreshes of that time, to serve them all with one poll.
func (m *Mirror) gather(ctx context.Context, length time.Duration) []refresh {
	var more []refresh
	timer := time.NewTimer(length)
	defer timer.Stop()
	for {
		select {
		case request := <-m.refreshes:
			more = append(more, request)
		case <-timer.C:
			return more
		case <-ctx.Done():
			return more
		}
	}
}

// interval is the time between the starts of two polls, unless a refresh is requested.
func (m *Mirror) interval() time.Duration { return max(m.pause, m.pace()) }

// untilNext is the time from the start of the last poll to that of the next one. While many nodes are new, each poll
// lists them.
func (m *Mirror) untilNext(last Poll) time.Duration {
	if m.growing {
		return max(m.interval(), m.untilList(true))
	}
	return min(m.interval(), m.untilList(last.Unlisted))
}

// pace is the minimum time between the starts of two polls, unless a refresh is requested.
func (m *Mirror) pace() time.Duration { return m.spacing(m.took) }

// spacing is the minimum time between two reads that take some time: the more nodes and jobs there are, the longer
// slurmrestd and slurmctld are busy with each, and slurmctld also has to schedule jobs.
func (m *Mirror) spacing(took time.Duration) time.Duration {
	return min(pollShare*took, max(m.options.Slow, maxPollShare*took))
}

// mayList reports whether a list of nodes is allowed without a request for it.
func (m *Mirror) mayList() bool { return time.Since(m.listed) >= m.spacing(m.listTook) }

// untilList returns how long after the start of the last poll the next list of nodes is allowed, or the next question
// to the tracker that replaces it, if one is due.
func (m *Mirror) untilList(due bool) time.Duration {
	if !due {
		return m.options.MaxQuiet
	}
	allowed := m.listed.Add(m.spacing(m.listTook))
	if last := m.Snapshot(); last != nil && m.tracking.usable(last) && m.tracking.next.Before(allowed) {
		allowed = m.tracking.next
	}
	return max(allowed.Sub(m.began), batchWindow)
}

// pollShare limits the time spent on lists of nodes, and that on the rest of polls, to 1/pollShare while things change;
// if they are so slow that the interval would exceed Slow, maxPollShare limits it to 1/maxPollShare instead.
const pollShare, maxPollShare = 8, 4
