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

// A ledger keeps the jobs that hold nodes while there are too many jobs to list them all.
//
// Its source is the states of all jobs, which are short and say nothing about nodes. Jobs that run or are being cleaned up show in
// the records of their nodes, from the moment on at which slurmctld gives them the nodes: those prove enough, and the details of
// such jobs are read a few at a time, for deadlines and messages. All other jobs that hold nodes, above all suspended ones, need
// not show there. Their details are read before anything is said about nodes; when that fails, the whole poll does.
//
// With tens of thousands of jobs also their states are too much for slurmrestd. Where slurmctld's metrics can be read, and say that no
// job is hidden, these are enough.
type ledger struct {
	client Reader
	// large reports that there are too many jobs to list.
	large bool

	jobs             map[int64]*holder // the jobs that hold nodes
	pending, running int
	// completing counts the jobs that are being cleaned up, when nothing else is known of jobs.
	completing int
	records    int       // all jobs, with the tasks of an array that have not started as one
	readAt     time.Time // when the states were last asked for
	reads      uint64

	received int64 // bytes of the last answer
	took     time.Duration
}

// A holder is a job that holds nodes.
type holder struct {
	states   []string
	seen     uint64    // the last read of states with the job
	hidden   uint64    // the last one in which it need not show in its nodes' records
	hiddenAt time.Time // when it was first hidden, without a break

	job    Job // the details; without an ID when they are not known
	nodes  []string
	readAt time.Time
}

// placed reports whether the details are known.
func (h *holder) placed() bool { return h.job.ID != 0 }

// shownJobStates are the states of jobs that hold nodes and were seen to show in the records of these. STOPPED is not SUSPENDED: it
// keeps its CPUs. Of others, such as CONFIGURING and SIGNALING, that is likely, but was not tried.
var shownJobStates = []string{"RUNNING", "COMPLETING", "STOPPED"}

// shows reports whether a job that holds nodes shows in their records.
func shows(states []string) bool {
	isShown := func(state string) bool { return state == "RUNNING" || state == "COMPLETING" }
	isStrange := func(state string) bool {
		return !slices.Contains(shownJobStates, state) && !slices.Contains(idleJobStates, state)
	}
	return slices.ContainsFunc(states, isShown) && !slices.ContainsFunc(states, isStrange)
}

// forget drops everything that is known of jobs.
func (l *ledger) forget() { l.jobs, l.readAt = nil, time.Time{} }

// weigh decides whether there are too many jobs to list.
func (l *ledger) weigh(limit int) { l.large = limit < 0 || l.records > limit }

// A JobCounter is a Reader that can also count jobs by state, at little cost.
type JobCounter interface {
	JobCensus(ctx context.Context) (JobCensus, error)
}

// A JobCensus counts jobs by state.
type JobCensus struct {
	Jobs, Pending, Running, Completing int
	// Hidden counts the jobs that may hold nodes without showing in the records of these, above all suspended ones.
	Hidden int
}

// maxStated is for how many jobs states are read when there is another way. slurmrestd needs half a second for 10,000 and, because
// the time grows with the square of their number, ten for 20,000.
const maxStated = 10_000

// readCensus counts the jobs and reports whether that is enough: they are too many to read their states, and none is hidden.
func (l *ledger) readCensus(ctx context.Context, began time.Time) bool {
	counter, ok := l.client.(JobCounter)
	if !ok {
		return false
	}
	// A job that was hidden before the nodes were read matters even if it shows now.
	for _, held := range l.jobs {
		if held.hidden > 0 && held.hidden+1 >= l.reads {
			return false
		}
	}
	census, err := counter.JobCensus(ctx)
	if err != nil || census.Jobs <= maxStated || census.Hidden != 0 {
		return false
	}
	l.jobs = nil
	l.pending, l.running, l.completing, l.records = census.Pending, census.Running, census.Completing, census.Jobs
	l.readAt, l.received, l.took = began, 0, time.Since(began)
	return true
}

// readStates reads the states of all jobs, or counts them if that is enough.
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
		if id != last { // the tasks of an array that have not started follow each other, with one number
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
			l.note(id, state.States, began)
		}
		return nil
	})
	if err != nil {
		l.readAt = time.Time{}
		return l.overloaded(err)
	}
	maps.DeleteFunc(l.jobs, func(_ int64, held *holder) bool { return held.seen != l.reads })
	l.pending, l.running, l.completing, l.records = pending, running, 0, records
	l.readAt, l.received, l.took = began, received, time.Since(began)
	return nil
}

// note takes up the state of a job that holds nodes.
func (l *ledger) note(id int64, states []string, began time.Time) {
	held := l.jobs[id]
	if held == nil {
		held = &holder{}
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

// overloaded says what to do when an answer is too long or takes too long because of the number of jobs.
func (l *ledger) overloaded(err error) error {
	if !errors.Is(err, Timeout) && !errors.Is(err, TooLarge) {
		return err
	}
	return fmt.Errorf("%w; Slurm last had %d jobs: if it has too many to tell their states in time, limit them by MaxJobCount or MinJobAge "+
		"in slurm.conf, or MaxSubmitJobs of accounts; from 26.05 on spec.metrics.enabled helps while no job is suspended", err, l.records)
}

// Limits of reading details.
const (
	detailsAtOnce = 4
	// maxHidden is for how many jobs details are read before a decision.
	maxHidden = 5000
	// hiddenAge is for how long the details of a job are known that is hidden: one that is requeued keeps its number and gets
	// other nodes.
	hiddenAge = 30 * time.Second
	// maxFill and fillTime bound the details that are read after a poll.
	maxFill  = 500
	fillTime = 2 * time.Second
	// shownAge is when the details of a job that runs are read again: its time limit may have been changed.
	shownAge = 30 * time.Minute
)

// readHolders reads the states of all jobs and what has to be known of them.
func (l *ledger) readHolders(ctx context.Context) error {
	if err := l.readStates(ctx); err != nil {
		return err
	}
	return l.readHidden(ctx)
}

// readHidden reads the details of jobs that were hidden in the last read of states or in the one before it.
func (l *ledger) readHidden(ctx context.Context) error {
	now := time.Now()
	var wanted []int64
	for id, held := range l.jobs {
		isHidden := held.hidden > 0 && held.hidden+1 >= l.reads
		isKnown := held.placed() && !held.readAt.Before(held.hiddenAt) && now.Sub(held.readAt) < hiddenAge
		if isHidden && !isKnown {
			wanted = append(wanted, id)
		}
	}
	if len(wanted) > maxHidden {
		return &Error{Kind: TooLarge, Op: "read suspended jobs", Err: fmt.Errorf(
			"%d jobs are suspended or in a state that is not known, and where they are is read for %d at most; resume or cancel some", len(wanted), maxHidden)}
	}
	return l.readDetails(ctx, wanted)
}

// fill reads some details that are not urgent, and reports whether any are known better.
func (l *ledger) fill(ctx context.Context, nodes []*Node) bool {
	wanted := l.unfilled(nodes, time.Now())
	if len(wanted) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, fillTime)
	defer cancel()
	_ = l.readDetails(ctx, wanted[:min(len(wanted), maxFill)]) // what was not read is read after the next poll
	return true
}

// unfilled lists the jobs whose details are missing or doubtful, the most urgent ones first.
func (l *ledger) unfilled(nodes []*Node, now time.Time) []int64 {
	type want struct {
		id      int64
		urgency int
	}
	var wants []want
	free := map[string]bool{} // the nodes whose records show no job
	for _, node := range nodes {
		if !node.Busy() {
			free[node.Name] = true
		}
	}
	for id, held := range l.jobs {
		switch {
		case !held.placed() && slices.Contains(held.states, "COMPLETING"):
			wants = append(wants, want{id, 0})
		case !held.placed():
			wants = append(wants, want{id, 2})
		case held.readAt.Before(now.Add(-shownAge)):
			wants = append(wants, want{id, 3})
		case shows(held.states) && now.Sub(held.readAt) > hiddenAge &&
			slices.ContainsFunc(held.nodes, func(name string) bool { return free[name] }): // it was requeued
			wants = append(wants, want{id, 1})
		}
	}
	slices.SortFunc(wants, func(a, b want) int { return cmp.Or(cmp.Compare(a.urgency, b.urgency), cmp.Compare(a.id, b.id)) })
	ids := make([]int64, len(wants))
	for i, want := range wants {
		ids[i] = want.id
	}
	return ids
}

// readDetails reads jobs by their numbers, several at once, up to the first that fails.
func (l *ledger) readDetails(ctx context.Context, ids []int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	numbers := make(chan int64)
	var readers sync.WaitGroup
	var mu sync.Mutex
	for range min(detailsAtOnce, len(ids)) {
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

// place takes up the details of a job. One that slurmctld no longer has, or that has ended meanwhile, holds nothing.
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

// queue counts the jobs. A node whose record shows jobs has one at least, even if none is known.
func (l *ledger) queue(nodes []*Node, offset time.Duration) Queue {
	queue := Queue{Loads: map[string]Load{}, Pending: l.pending, Running: l.running, Partial: true, Unplaced: l.completing}
	for _, held := range l.jobs {
		if !held.placed() {
			if slices.Contains(held.states, "COMPLETING") {
				queue.Unplaced++
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

// A QueueReport says how a mirror reads the jobs of its cluster.
type QueueReport struct {
	// Large reports that there are too many jobs to list: see Queue.Partial.
	Large bool
	// Jobs counts the jobs, with the tasks of an array that have not started as one.
	Jobs int
	// Bytes and Took are the size of the last answer about all jobs and the time until its end.
	Bytes int64
	Took  time.Duration
	// Unplaced counts the jobs that hold nodes of which it is not known yet which ones.
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
