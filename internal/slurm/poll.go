package slurm

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// A demand is what callers of Refresh wait for: jobs and nodes, or only some nodes if their names are given.
type demand struct {
	full  bool
	nodes []string
}

func demandOf(waiting []refresh) demand {
	names := map[string]struct{}{}
	for _, request := range waiting {
		if len(request.nodes) == 0 {
			return demand{full: true}
		}
		for _, node := range request.nodes {
			names[node] = struct{}{}
		}
	}
	return demand{len(waiting) > 0, slices.Sorted(maps.Keys(names))}
}

// poll reads what may have changed, and always what is demanded, and publishes it.
func (m *Mirror) poll(ctx context.Context, wanted demand) Poll {
	m.apart, m.growing = 0, false
	defer func() { m.took = time.Since(m.began) - m.apart }()
	diag, err := m.client.Diag(ctx)
	if err != nil {
		return Poll{Err: err}
	}
	next := &Snapshot{}
	if old := m.Snapshot(); old != nil {
		*next = *old
	}
	m.clock.observe(diag, time.Now())
	next.ControllerSince, next.ClockOffset = m.clock.since, m.clock.offset
	restarted := !diag.CountersSince.Equal(m.countersSince) || diag.Now.Before(m.controllerNow) || next.Generation == 0
	if restarted {
		// Another slurmctld may have another clock, or the clock was set back: the cursors are no longer valid.
		m.nodeCursor, m.jobCursor, m.countersAtCount, m.countersAtJobs, wanted = 0, 0, nil, nil, demand{full: true}
		m.ledger.forget()
	}
	m.controllerNow = diag.Now
	counters := m.changeCounters(ctx, diag)
	if err := m.checkQueueSize(ctx, counters.jobs); err != nil {
		return Poll{Diag: diag, Err: err}
	}
	read := m.readListed
	if m.ledger.large {
		read = m.readLarge
	}
	unlisted := !wanted.full && !m.mayList() && m.nodesAreDue(counters)
	changed, err := read(ctx, next, counters, wanted)
	if err != nil {
		return Poll{Diag: diag, Err: err}
	}
	next.complete(m.Snapshot())
	if next.NodesAsOf.After(m.Snapshot().nodesAsOf()) {
		m.counters, m.countersSince = counters.all, diag.CountersSince
	}
	m.updatePause(len(changed), next.Generation == 0)
	if len(changed) > 0 || next.Generation == 0 {
		next.Generation++
	}
	m.subscriptions.publish(func() { m.current.Store(next) }, changed...)
	return Poll{Diag: diag, Changed: changed, Unlisted: unlisted && next.ChangesAsOf().Before(m.began)}
}

// updatePause sets the interval to the next poll after one that showed some changes. While many nodes change, as when
// the slurmds of a large NodeSet start, polls are less frequent, and each shows more of them.
func (m *Mirror) updatePause(changed int, first bool) {
	m.burst = (changed >= minBurst || m.growing) && !first
	switch {
	case m.burst:
		m.pause = min(2*m.pause, maxBurstPause*m.options.Fast, m.options.Slow)
	case changed > 0 || first:
		m.pause = m.options.Fast
	default:
		m.pause = min(2*m.pause, m.options.Slow)
	}
}

// minBurst is how many nodes must change between two polls to make polls less frequent; maxBurstPause is the interval
// then, as a multiple of Fast, and burstQuiet how long the jobs are not read if their counters do not change, as a
// multiple of Slow.
const minBurst, maxBurstPause, burstQuiet = 16, 4, 3

// checkQueueSize counts the jobs before they are listed, unless their number cannot have grown since the last count.
func (m *Mirror) checkQueueSize(ctx context.Context, counters map[string]int64) error {
	if m.ledger.large || (m.countersAtCount != nil && maps.Equal(counters, m.countersAtCount)) {
		return nil
	}
	if err := m.ledger.readStates(ctx); err != nil {
		return err
	}
	m.countersAtCount = counters
	if m.ledger.updateLarge(m.options.MaxListedJobs); m.ledger.large {
		m.jobCursor = 0
	} else {
		m.ledger.forget() // the list has more information
	}
	return nil
}

// readListed updates the jobs from their list, then nodes, and returns the changed nodes.
func (m *Mirror) readListed(ctx context.Context, next *Snapshot, counters counters, wanted demand) ([]string, error) {
	changed, err := m.readJobs(ctx, next, counters.jobs, wanted.full)
	if err != nil {
		return nil, err
	}
	changedNodes, err := m.readDemandedOrDue(ctx, next, wanted, changed, counters)
	if err != nil {
		// the jobs are not published, so read them again
		m.jobCursor, m.jobsQuietUntil, m.countersAtJobs = 0, time.Time{}, nil
		return nil, err
	}
	return append(changed, changedNodes...), nil
}

// readDemandedOrDue updates the nodes that are demanded or may have changed, in the cheapest way.
func (m *Mirror) readDemandedOrDue(ctx context.Context, next *Snapshot, wanted demand, jobsChanged []string,
	counters counters) ([]string, error) {
	switch {
	case wanted.full && m.isCheaper(next, wanted.nodes):
		return m.readDemanded(ctx, next, wanted.nodes)
	case wanted.full:
		return m.readNodes(ctx, next)
	case len(jobsChanged) > 0, m.nodesAreDue(counters):
		return m.readDue(ctx, next, jobsChanged, counters)
	default:
		return m.readMarked(ctx, next, jobsChanged)
	}
}

// readDue updates the nodes after something may have changed, in the cheapest way.
func (m *Mirror) readDue(ctx context.Context, next *Snapshot, jobsChanged []string, counters counters) ([]string,
	error) {
	changed, complete, err := m.readTracked(ctx, next, jobsChanged, counters)
	switch {
	case err != nil, complete:
		return changed, err
	case m.mayList():
		return m.readNodes(ctx, next)
	}
	return m.readMarked(ctx, next, jobsChanged)
}

// nodesAreDue reports whether the nodes must be read: something indicates a change, or they were not read for too long.
func (m *Mirror) nodesAreDue(counters counters) bool {
	return m.pause < m.options.Slow || !maps.Equal(counters.all, m.counters) || !time.Now().Before(m.quietUntil)
}

// readLarge updates jobs and nodes without the list of jobs. The job states are read before and after the nodes: a job
// that is suspended while the nodes are read is seen as suspended in one of the two reads.
func (m *Mirror) readLarge(ctx context.Context, next *Snapshot, counters counters, wanted demand) ([]string, error) {
	if wanted.full && time.Since(m.ledger.readAt) > maxGap {
		if err := m.ledger.readStates(ctx); err != nil {
			return nil, err
		}
	}
	before, last := m.ledger.readAt, next.readAt
	changed, err := m.readAroundHidden(ctx, next, counters, wanted)
	if err != nil || (next.readAt.Equal(last) && maps.Equal(counters.jobs, m.countersAtCount)) {
		return nil, err
	}
	if err := m.ledger.readHolders(ctx); err != nil {
		// the nodes are not published, so read them again
		m.nodeCursor, m.quietUntil, m.tracking.cursor = 0, time.Time{}, ""
		return nil, err
	}
	m.countersAtCount = counters.jobs
	next.statesBefore, next.JobsAsOf = before, time.Time{}
	if next.readAt.Sub(before) <= maxGap {
		next.JobsAsOf = m.ledger.readAt
	}
	changed = append(changed, m.updateQueue(next)...)
	if m.ledger.updateLarge(m.options.MaxListedJobs / 2); !m.ledger.large { // the next poll reads the list
		m.countersAtJobs, m.jobsQuietUntil = nil, time.Time{}
		m.ledger.forget()
	}
	return changed, nil
}

// readAroundHidden updates the nodes that are demanded or may have changed: all of them if some jobs may not show in
// the records of their nodes. Such a job shows there as soon as it is resumed, and is then no longer looked for.
func (m *Mirror) readAroundHidden(ctx context.Context, next *Snapshot, counters counters, wanted demand) ([]string,
	error) {
	switch {
	case !m.ledger.hides():
		return m.readDemandedOrDue(ctx, next, wanted, nil, counters)
	case wanted.full, m.mayList() && m.nodesAreDue(counters):
		return m.readNodes(ctx, next)
	default:
		return nil, nil
	}
}

// maxGap is the longest time between reading the job states and reading the nodes for which the states still say
// something about the nodes. Slurm's gang scheduler runs each job on a shared node for at least five seconds.
const maxGap = 5 * time.Second

// updateQueue updates the queue of a snapshot from the ledger and returns the nodes whose load has changed.
func (m *Mirror) updateQueue(next *Snapshot) []string {
	queue := m.ledger.queue(next.Nodes, m.clock.offset)
	changed := changedLoads(next.Loads, queue.Loads)
	next.Queue = queue
	return changed
}

// fill reads the details of some running jobs, after the callers of Refresh were answered. It returns the nodes whose
// load has changed.
func (m *Mirror) fill(ctx context.Context) []string {
	old := m.Snapshot()
	if !m.ledger.large || old == nil || !old.Partial || !m.ledger.fill(ctx, old.Nodes) {
		return nil
	}
	next := new(*old)
	changed := m.updateQueue(next)
	if len(changed) > 0 {
		next.Generation++
		m.subscriptions.publish(func() { m.current.Store(next) }, changed...)
	}
	return changed
}

// readJobs updates the jobs from their list and returns the nodes whose load has changed.
func (m *Mirror) readJobs(ctx context.Context, next *Snapshot, counters map[string]int64, full bool) ([]string,
	error) {
	now, quietFor := time.Now(), m.options.Slow/2
	if m.burst { // each poll lists the nodes, which shows what happens to the jobs
		quietFor = burstQuiet * m.options.Slow
	}
	quiet := now.Sub(m.jobsRead) < quietFor && maps.Equal(counters, m.countersAtJobs)
	if !full && (quiet || now.Before(m.jobsQuietUntil)) {
		return nil, nil
	}
	list, err := m.client.Jobs(ctx, m.jobCursor)
	took := time.Since(now)
	m.apart += took
	if err != nil {
		return nil, err
	}
	next.JobsAsOf, m.jobsRead, m.countersAtJobs = now, now, counters
	if list.Unchanged {
		return nil, nil
	}
	queue, err := count(list.Jobs, m.clock.offset)
	if err != nil {
		return nil, &Error{Kind: Malformed, Op: "list jobs", Err: err}
	}
	m.jobCursor = list.Cursor
	m.ledger.records, m.ledger.received, m.ledger.took = len(list.Jobs), list.Bytes, took
	changed := changedLoads(next.Loads, queue.Loads)
	next.Queue = queue
	// A busy queue changes all the time, and its list is long. What matters about jobs shows in the nodes too.
	// Changes of nodes need not wait for the next list.
	interval := min(time.Duration(list.Bytes)*time.Second/time.Duration(jobsRate), m.options.Slow)
	m.jobsQuietUntil = now.Add(max(interval, m.spacing(took)))
	return changed, nil
}

// jobsRate limits the bytes per second spent on jobs, except for refreshes.
const jobsRate = 1 << 20

// readNodes updates the nodes and returns those that have changed.
func (m *Mirror) readNodes(ctx context.Context, next *Snapshot) ([]string, error) {
	now := time.Now()
	marked := m.marked.all()
	list, err := m.client.Nodes(ctx, m.nodeCursor)
	m.listed, m.listTook = now, time.Since(now)
	m.apart += m.listTook
	if err != nil {
		return nil, err
	}
	next.NodesAsOf, next.readAt = now, now
	m.marked.remove(marked)
	if list.Unchanged {
		return nil, nil
	}
	next.nodeTimes = nil
	m.nodeCursor = list.Cursor
	m.growing = len(next.Nodes) > 0 && len(list.Nodes)-len(next.Nodes) > maxNew
	nodes, changed := shareNodes(next.Nodes, list.Nodes)
	next.Nodes = nodes
	if len(changed) == 0 {
		quiet := time.Duration(float64(list.Bytes) / float64(m.options.Noise) * float64(time.Second))
		m.quietUntil = now.Add(min(quiet, m.options.MaxQuiet))
	}
	return changed, nil
}

// counters show that something may have changed: all of them for nodes, and some of them for jobs.
type counters struct {
	all, jobs map[string]int64
}

// changeCounters returns the counters of requests that can change a node (all but the read-only ones), of jobs, and the
// census if there is one. A failed census is omitted.
func (m *Mirror) changeCounters(ctx context.Context, diag Diag) counters {
	all := maps.Clone(diag.RPCs)
	maps.DeleteFunc(all, func(name string, _ int64) bool {
		return strings.Contains(name, "_INFO") || slices.Contains(readOnlyRPCs, name)
	})
	all["jobs submitted"], all["jobs started"] = diag.JobsSubmitted, diag.JobsStarted
	jobs := maps.Clone(all)
	maps.DeleteFunc(jobs, func(name string, _ int64) bool { return slices.Contains(nodeRPCs, name) })
	if counter, ok := m.client.(Counter); ok {
		if census, err := counter.Census(ctx); err == nil {
			maps.Copy(all, census)
		}
	}
	return counters{all, jobs}
}

// nodeRPCs are the requests that change nodes and add no job. They can end jobs, whose list is then read some seconds
// later.
var nodeRPCs = []string{
	"MESSAGE_NODE_REGISTRATION_STATUS", "REQUEST_UPDATE_NODE", "REQUEST_CREATE_NODE", "REQUEST_DELETE_NODE",
}

// readOnlyRPCs are the read-only requests besides all those with INFO in their names.
var readOnlyRPCs = []string{
	"REQUEST_PING", "REQUEST_JOB_STATE", "REQUEST_CONFIG", "REQUEST_CONTROL_STATUS", "REQUEST_AUTH_TOKEN",
	"REQUEST_JOB_READY", "REQUEST_BATCH_SCRIPT", "REQUEST_HOSTLIST_EXPANSION",
}
