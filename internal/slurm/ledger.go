package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

// A ledger tracks the jobs that hold nodes while there are too many jobs to list.
//
// Its source is the states of all jobs, which are short but do not name nodes. Running and completing jobs show in the
// records of their nodes as soon as slurmctld allocates them: the records prove enough, and the details of such jobs
// are read in small batches, for deadlines and messages. All other jobs that hold nodes, above all suspended ones, may
// not show there. Their details are read before the poll decides anything about nodes; if that fails, the whole poll
// fails.
//
// With tens of thousands of jobs, even their states are too much for slurmrestd. If slurmctld's metrics are available
// and show no hidden job, they are used instead.
type ledger struct {
	client Reader
	// large reports that there are too many jobs to list.
	large bool

	jobs             map[int64]*holder // jobs that hold nodes
	pending, running int
	// completing counts completing jobs if only the census was read.
	completing int
	records    int       // all jobs; the tasks of an array that have not started count as one
	readAt     time.Time // start of the last read of the states
	reads      uint64

	received int64 // bytes of the last answer
	took     time.Duration
}

// A holder is a job that holds nodes.
type holder struct {
	states   []string
	since    time.Time // the first read of states with the job
	seen     uint64    // the last read of states with the job
	hidden   uint64    // the last read in which it may not show in its nodes' records
	hiddenAt time.Time // when it became hidden

	job    Job // the details; ID is 0 if they are not known
	nodes  []string
	readAt time.Time
}

// placed reports whether the details are known.
func (h *holder) placed() bool { return h.job.ID != 0 }

// shownJobStates are the states of jobs that hold nodes and were observed to show in the nodes' records. STOPPED is not
// SUSPENDED: such a job keeps its CPUs. Others, such as SIGNALING, probably show too, but were not tested.
var shownJobStates = []string{"RUNNING", "COMPLETING", "STOPPED", "CONFIGURING", "POWER_UP_NODE"}

// shows reports whether a job that holds nodes shows in their records.
func shows(states []string) bool {
	isShown := func(state string) bool { return state == "RUNNING" || state == "COMPLETING" }
	isUnknown := func(state string) bool {
		return !slices.Contains(shownJobStates, state) && !slices.Contains(idleJobStates, state)
	}
	return slices.ContainsFunc(states, isShown) && !slices.ContainsFunc(states, isUnknown)
}

// starts reports whether a job waits for its nodes to be powered up, or to be configured. Which nodes these are decides
// which pods of an elastic NodeSet are created together.
func starts(states []string) bool {
	return slices.Contains(states, "CONFIGURING") || slices.Contains(states, "POWER_UP_NODE")
}

// forget drops all known jobs.
func (l *ledger) forget() { l.jobs, l.readAt = nil, time.Time{} }

// updateLarge decides whether there are too many jobs to list.
func (l *ledger) updateLarge(limit int) { l.large = limit < 0 || l.records > limit }

// A JobCounter is a Reader that can also count jobs by state, at low cost.
type JobCounter interface {
	JobCensus(ctx context.Context) (JobCensus, error)
}

// A JobCensus holds job counts by state.
type JobCensus struct {
	Jobs, Pending, Running, Completing int
	// Hidden counts the jobs that may hold nodes without showing in their records, above all suspended ones.
	Hidden int
}

// maxJobStates is the number of jobs up to which states are read if a census is available. slurmrestd needs half a
// second for 10,000 jobs and, because the time grows quadratically, ten seconds for 20,000.
const maxJobStates = 10_000

// readCensus reads the job census and reports whether it suffices: there are too many jobs to read their states, and
// none is hidden.
func (l *ledger) readCensus(ctx context.Context, began time.Time) bool {
	counter, ok := l.client.(JobCounter)
	if !ok {
		return false
	}
	if l.hides() {
		return false
	}
	census, err := counter.JobCensus(ctx)
	if err != nil || census.Jobs <= maxJobStates || census.Hidden != 0 {
		return false
	}
	l.jobs = nil
	l.pending, l.running, l.completing, l.records = census.Pending, census.Running, census.Completing, census.Jobs
	l.readAt, l.received, l.took = began, 0, time.Since(began)
	return true
}

// readStates reads the states of all jobs, or only the census if that suffices.
func (l *ledger) readStates(ctx context.Context) error {
	began := time.Now()
	l.reads++
	if l.readCensus(ctx, began) {
		return nil
	}
	if l.jobs == nil {
		l.jobs = map[int64]*holder{}
	}
	pending, running, records, last := 0, 0, 0, int64(-1)
	received, err := l.client.JobStates(ctx, func(state JobState) error {
		id, err := state.Number()
		if err != nil {
			return err
		}
		if id != last { // tasks of an array that have not started are adjacent and share one number
			last = id
			records++
		}
		job := Job{States: state.States}
		switch {
		case job.Pending():
			pending++
		case job.Running():
			running++
		}
		if job.Holds() {
			l.recordState(id, state.States, began)
		}
		return nil
	})
	if err != nil {
		l.readAt = time.Time{}
		return l.explainOverload(err)
	}
	maps.DeleteFunc(l.jobs, func(_ int64, held *holder) bool { return held.seen != l.reads })
	l.pending, l.running, l.completing, l.records = pending, running, 0, records
	l.readAt, l.received, l.took = began, received, time.Since(began)
	return nil
}

// recordState records the state of a job that holds nodes.
func (l *ledger) recordState(id int64, states []string, began time.Time) {
	held := l.jobs[id]
	if held == nil {
		held = &holder{since: began}
		l.jobs[id] = held
	}
	if !slices.Equal(held.states, states) {
		held.states = slices.Clone(states)
	}
	held.seen = l.reads
	if shows(states) {
		return
	}
	if held.hidden+1 < l.reads {
		held.hiddenAt = began
	}
	held.hidden = l.reads
}

// isHidden reports whether a job may not show in the records of its nodes, or did not before the last read of the
// states: it matters until the nodes were read after it has shown.
func (l *ledger) isHidden(held *holder) bool { return held.hidden > 0 && held.hidden+1 >= l.reads }

// hides reports whether there is such a job.
func (l *ledger) hides() bool {
	for _, held := range l.jobs {
		if l.isHidden(held) {
			return true
		}
	}
	return false
}

// explainOverload adds the remedy to an error that a large number of jobs may have caused.
func (l *ledger) explainOverload(err error) error {
	if !errors.Is(err, Timeout) && !errors.Is(err, TooLarge) {
		return err
	}
	return fmt.Errorf(
		"%w; Slurm last had %d jobs: if these are too many to read their states in time, limit them by MaxJobCount or "+
			"MinJobAge "+
			"in slurm.conf, or MaxSubmitJobs of accounts; from 25.11 on spec.metrics.enabled helps while no job is "+
			"suspended", err, l.records)
}

// Limits for reading job details.
const (
	detailConcurrency = 4
	// maxHidden is the maximum number of jobs whose details are read before a decision.
	maxHidden = 5000
	// hiddenMaxAge is how long the details of a hidden job are valid: a requeued job keeps its number and gets other
	// nodes.
	hiddenMaxAge = 30 * time.Second
	// maxFill and fillTimeout bound the details that are read after a poll.
	maxFill     = 500
	fillTimeout = 2 * time.Second
	// identifiedWithin is how long the details of a job may be missing before nothing waits for any more.
	identifiedWithin = 30 * time.Second
	// shownMaxAge is when the details of a running job are read again: its time limit may have changed.
	shownMaxAge = 30 * time.Minute
)

// readHolders reads the states of all jobs and the details of the hidden ones.
func (l *ledger) readHolders(ctx context.Context) error {
	if err := l.readStates(ctx); err != nil {
		return err
	}
	return l.readHidden(ctx)
}

// readHidden reads the details of jobs that were hidden in one of the last two reads of states.
func (l *ledger) readHidden(ctx context.Context) error {
	now := time.Now()
	var wanted []int64
	for id, held := range l.jobs {
		isKnown := held.placed() && !held.readAt.Before(held.hiddenAt) && now.Sub(held.readAt) < hiddenMaxAge
		if l.isHidden(held) && !isKnown {
			wanted = append(wanted, id)
		}
	}
	if len(wanted) > maxHidden {
		return &Error{Kind: TooLarge, Op: "read suspended jobs", Err: fmt.Errorf(
			"%d jobs are suspended or in a state that is not known, and their nodes are read for %d at most; "+
				"resume or cancel some", len(wanted), maxHidden)}
	}
	return l.readDetails(ctx, wanted)
}

// fill reads some details that are not urgent, and reports whether it tried any.
func (l *ledger) fill(ctx context.Context, nodes []*Node) bool {
	wanted := l.unfilled(nodes, time.Now())
	if len(wanted) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	_ = l.readDetails(ctx, wanted[:min(len(wanted), maxFill)]) // the rest is read after the next poll
	return true
}

// unfilled returns the jobs whose details are missing or outdated, most urgent first.
func (l *ledger) unfilled(nodes []*Node, now time.Time) []int64 {
	type want struct {
		id      int64
		urgency int
	}
	var wants []want
	free := map[string]bool{} // nodes whose records show no job
	for _, node := range nodes {
		if !node.Busy() {
			free[node.Name] = true
		}
	}
	for id, held := range l.jobs {
		switch {
		case !held.placed() && slices.Contains(held.states, "COMPLETING"):
			wants = append(wants, want{id, 0})
		case !held.placed() && starts(held.states):
			wants = append(wants, want{id, 1})
		case !held.placed():
			wants = append(wants, want{id, 3})
		case held.readAt.Before(now.Add(-shownMaxAge)):
			wants = append(wants, want{id, 4})
		case shows(held.states) && now.Sub(held.readAt) > hiddenMaxAge &&
			slices.ContainsFunc(held.nodes, func(name string) bool { return free[name] }): // it was requeued
			wants = append(wants, want{id, 2})
		}
	}
	slices.SortFunc(wants,
		func(a, b want) int { return cmp.Or(cmp.Compare(a.urgency, b.urgency), cmp.Compare(a.id, b.id)) })
	ids := make([]int64, len(wants))
	for i, want := range wants {
		ids[i] = want.id
	}
	return ids
}

// readDetails reads jobs by number, in parallel, up to the first failure.
func (l *ledger) readDetails(ctx context.Context, ids []int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	numbers := make(chan int64)
	var readers sync.WaitGroup
	var mu sync.Mutex
	for range min(detailConcurrency, len(ids)) {
		readers.Go(func() {
			for id := range numbers {
				job, err := l.client.Job(ctx, id)
				mu.Lock()
				err = l.place(id, job, err)
				mu.Unlock()
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, id := range ids {
		if ctx.Err() != nil {
			break
		}
		numbers <- id
	}
	close(numbers)
	readers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return nil
}

// place records the details of a job. A job that slurmctld no longer has, or that has ended, holds nothing.
func (l *ledger) place(id int64, job Job, err error) error {
	switch {
	case ErrorNumber(err, NumberInvalidJob):
		delete(l.jobs, id)
		return nil
	case err != nil:
		return err
	case !job.Holds():
		delete(l.jobs, id)
		return nil
	}
	names, err := hostlist.Expand(job.Nodes, maxNodes)
	if err != nil {
		return &Error{Kind: Malformed, Op: "get job " + strconv.FormatInt(id, 10), Err: err}
	}
	held := l.jobs[id]
	held.job, held.nodes, held.readAt = Job{ID: id, States: held.states, End: job.End}, names, time.Now()
	return nil
}

// queue returns the job counts. A node whose record shows jobs has at least one, even if none is known.
func (l *ledger) queue(nodes []*Node, offset time.Duration) Queue {
	queue := Queue{
		Loads: map[string]Load{}, Pending: l.pending, Running: l.running, Partial: true, Unplaced: l.completing,
	}
	for _, held := range l.jobs {
		if !held.placed() {
			if slices.Contains(held.states, "COMPLETING") {
				queue.Unplaced++
			}
			by := held.since.Add(identifiedWithin)
			if starts(held.states) && (queue.IdentifiedBy.IsZero() || by.Before(queue.IdentifiedBy)) {
				queue.IdentifiedBy = by
			}
			continue
		}
		held.job.States = held.states
		queue.place(&held.job, held.nodes, offset)
	}
	for _, node := range nodes {
		if _, known := queue.Loads[node.Name]; known || !showsJobs(node) {
			continue
		}
		load := Load{Running: 1, Unlimited: true}
		if node.State != StateAllocated && node.State != StateMixed && node.AllocatedCPUs == 0 {
			load.Running, load.Completing = 0, 1
		}
		queue.Loads[node.Name] = load
	}
	return queue
}

// showsJobs reports whether the record of a node shows that it has jobs.
func showsJobs(node *Node) bool {
	return node.State == StateAllocated || node.State == StateMixed || node.Flags.Has(FlagCompleting) ||
		node.AllocatedCPUs > 0 || node.AllocatedMemory > 0
}

// A QueueReport describes how a mirror reads the jobs of its cluster.
type QueueReport struct {
	// Large reports that there are too many jobs to list: see Queue.Partial.
	Large bool
	// Jobs counts the jobs; the tasks of an array that have not started count as one.
	Jobs int
	// Bytes and Took are the size and duration of the last answer about all jobs.
	Bytes int64
	Took  time.Duration
	// Unplaced counts the jobs that hold nodes whose names are not known yet.
	Unplaced int
}

func (l *ledger) report() QueueReport {
	report := QueueReport{Large: l.large, Jobs: l.records, Bytes: l.received, Took: l.took}
	for _, held := range l.jobs {
		if !held.placed() {
			report.Unplaced++
		}
	}
	return report
}
