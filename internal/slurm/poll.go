package slurm

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// poll asks for what may have changed, and publishes it. When it is demanded, both nodes and jobs are asked for.
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
	m.clock.observe(diag, time.Now())
	next.ControllerSince = m.clock.since
	restarted := !diag.CountersSince.Equal(m.countersSince) || diag.Now.Before(m.controllerNow) || next.Generation == 0
	if restarted {
		// Another slurmctld may have another clock, or this one's was set back, and then its times mean something else.
		m.nodeCursor, m.jobCursor, m.weighed, demanded = 0, 0, nil, true
		m.ledger.forget()
	}
	m.controllerNow = diag.Now
	counters := m.signs(ctx, diag)
	if err := m.weigh(ctx, counters); err != nil {
		return Poll{Diag: diag, Err: err}
	}
	read := m.readListed
	if m.ledger.large {
		read = m.readLarge
	}
	changed, err := read(ctx, next, counters, demanded)
	if err != nil {
		return Poll{Diag: diag, Err: err}
	}
	if next.NodesAsOf.After(m.Snapshot().nodesAsOf()) {
		m.counters, m.countersSince = counters, diag.CountersSince
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

// weigh counts the jobs before their list is read, unless their number cannot have grown since the last time.
func (m *Mirror) weigh(ctx context.Context, counters map[string]int64) error {
	if m.ledger.large || (m.weighed != nil && maps.Equal(counters, m.weighed)) {
		return nil
	}
	if err := m.ledger.readStates(ctx); err != nil {
		return err
	}
	m.weighed = counters
	if m.ledger.weigh(m.options.MaxListedJobs); m.ledger.large {
		m.jobCursor = 0
	} else {
		m.ledger.forget() // the list says more
	}
	return nil
}

// readListed brings jobs and nodes up to date from their lists, and returns the nodes that have changed.
func (m *Mirror) readListed(ctx context.Context, next *Snapshot, counters map[string]int64, demanded bool) ([]string, error) {
	changed, err := m.readJobs(ctx, next, demanded)
	if err != nil {
		return nil, err
	}
	if !demanded && len(changed) == 0 && !m.nodesAreDue(counters) {
		return changed, nil
	}
	changedNodes, err := m.readNodes(ctx, next)
	if err != nil {
		m.jobCursor, m.jobsQuietUntil = 0, time.Time{} // what was learned of jobs is not published
		return nil, err
	}
	return append(changed, changedNodes...), nil
}

// nodesAreDue reports whether there is a sign that nodes have changed, or none for so long that they are read nevertheless.
func (m *Mirror) nodesAreDue(counters map[string]int64) bool {
	return m.pause < m.options.Slow || !maps.Equal(counters, m.counters) || !time.Now().Before(m.quietUntil)
}

// readLarge brings jobs and nodes up to date without the list of jobs. The states of jobs are read before the nodes and again
// after them: a job that is suspended while the nodes are read is seen as suspended in one of the two.
func (m *Mirror) readLarge(ctx context.Context, next *Snapshot, counters map[string]int64, demanded bool) ([]string, error) {
	if !demanded && !m.nodesAreDue(counters) {
		return nil, nil
	}
	if demanded && time.Since(m.ledger.readAt) > maxGap {
		if err := m.ledger.readStates(ctx); err != nil {
			return nil, err
		}
	}
	proves := time.Since(m.ledger.readAt) <= maxGap
	changed, err := m.readNodes(ctx, next)
	if err != nil {
		return nil, err
	}
	if err := m.ledger.readHolders(ctx); err != nil {
		m.nodeCursor, m.quietUntil = 0, time.Time{} // what was learned of nodes is not published
		return nil, err
	}
	next.JobsAsOf = time.Time{}
	if proves {
		next.JobsAsOf = m.ledger.readAt
	}
	changed = append(changed, m.takeQueue(next)...)
	if m.ledger.weigh(m.options.MaxListedJobs / 2); !m.ledger.large { // the next poll reads the list
		m.weighed, m.jobsQuietUntil = counters, time.Time{}
		m.ledger.forget()
	}
	return changed, nil
}

// maxGap is how long before the nodes the states of the jobs may have been read to say something about them. Slurm lets jobs
// that take turns on a node run for five seconds at least.
const maxGap = 5 * time.Second

// takeQueue puts what the ledger knows into a snapshot and returns the nodes whose load has changed.
func (m *Mirror) takeQueue(next *Snapshot) []string {
	queue := m.ledger.queue(next.Nodes, m.clock.offset)
	changed := changedLoads(next.Loads, queue.Loads)
	next.Queue = queue
	return changed
}

// fill reads the details of some jobs that run, after those who waited for the poll were answered. It returns the nodes whose
// load is known better.
func (m *Mirror) fill(ctx context.Context) []string {
	old := m.Snapshot()
	if !m.ledger.large || old == nil || !old.Partial || !m.ledger.fill(ctx, old.Nodes) {
		return nil
	}
	next := new(*old)
	changed := m.takeQueue(next)
	if len(changed) > 0 {
		next.Generation++
		m.subscriptions.publish(func() { m.current.Store(next) }, changed...)
	}
	return changed
}

// readJobs brings the jobs up to date from their list and returns the nodes whose load has changed.
func (m *Mirror) readJobs(ctx context.Context, next *Snapshot, demanded bool) ([]string, error) {
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
	queue, err := count(list.Jobs, m.clock.offset)
	if err != nil {
		return nil, &Error{Kind: Malformed, Op: "list jobs", Err: err}
	}
	m.jobCursor = list.Cursor
	m.ledger.records, m.ledger.received, m.ledger.took = len(list.Jobs), list.Bytes, time.Since(now)
	changed := changedLoads(next.Loads, queue.Loads)
	next.Queue = queue
	// A queue that is busy changes all the time, and its list is long. What matters about jobs shows in the nodes too.
	m.jobsQuietUntil = now.Add(min(time.Duration(list.Bytes)*time.Second/time.Duration(jobsRate), m.options.Slow))
	return changed, nil
}

// jobsRate is how many bytes a second may be spent on jobs, unless they are demanded.
const jobsRate = 1 << 20

// readNodes brings the nodes up to date and returns those that have changed.
func (m *Mirror) readNodes(ctx context.Context, next *Snapshot) ([]string, error) {
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

// signs are the counters of requests that can change a node, all but those that only ask, of jobs, and the census if there is
// one. It may fail: then it is no sign.
func (m *Mirror) signs(ctx context.Context, diag Diag) map[string]int64 {
	counters := maps.Clone(diag.RPCs)
	maps.DeleteFunc(counters, func(name string, _ int64) bool {
		return strings.Contains(name, "_INFO") || slices.Contains(questions, name)
	})
	counters["jobs submitted"], counters["jobs started"] = diag.JobsSubmitted, diag.JobsStarted
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
