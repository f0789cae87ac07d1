//go:build integration

package operator_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slurm-operator/slurm-operator/internal/controller/slurmclient"
)

// An observedQueue is the work queue of a controller. It remembers its timers, which a queue does not show, and counts
// what is added to it.
//
// A reconcile that asks for the same delay again and again polls: it could go on forever. Such a timer does not keep a
// wait from ending, after it has fired in vain. All other timers do, until they have fired.
type observedQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	name    string
	limiter workqueue.TypedRateLimiter[reconcile.Request]

	mu      sync.Mutex
	workers int // that wait for an item
	active  map[reconcile.Request]bool
	items   map[reconcile.Request]*schedule
	stirred int // how often something else than a poll was added or taken
}

// A schedule are the timers of one object.
type schedule struct {
	timers []timer
	// delay is what the last reconcile has asked for, and ends that it is about to ask.
	delay time.Duration
	ends  bool
	polls bool
	taken time.Time // for the last reconcile
}

// A timer that was not asked for by a reconcile of its object may be void: if the object was reconciled before it was
// due, the queue has dropped it or not. It counts in any case.
type timer struct {
	due   time.Time
	asked bool // the queue drops it when it hands out its object
	poll  bool
}

func newObservedQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) *observedQueue {
	return &observedQueue{
		PriorityQueue: priorityqueue.New(name, func(options *priorityqueue.Opts[reconcile.Request]) {
			options.RateLimiter = limiter
		}),
		name: name, limiter: limiter, active: map[reconcile.Request]bool{}, items: map[reconcile.Request]*schedule{},
	}
}

// Add adds an object.
func (q *observedQueue) Add(item reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, item) }

// AddAfter adds an object after a delay.
func (q *observedQueue) AddAfter(item reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, item)
}

// AddRateLimited adds an object after its backoff.
func (q *observedQueue) AddRateLimited(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

// AddWithOpts adds objects, and remembers their timers.
func (q *observedQueue) AddWithOpts(options priorityqueue.AddOpts, items ...reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, item := range items {
		after := options.After
		if options.RateLimited {
			if backoff := q.limiter.When(item); after == 0 || backoff < after {
				after = backoff
			}
		}
		known := q.scheduleOf(item)
		known.polls = known.ends && after > 0 && !options.RateLimited && after == known.delay
		if known.ends && !options.RateLimited {
			known.delay = after
		}
		if known.ends = false; !known.polls {
			q.stirred++
		}
		if after > 0 {
			known.timers = append(known.timers, timer{time.Now().Add(after), q.active[item], known.polls})
		}
		q.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: options.Priority}, item)
	}
}

func (q *observedQueue) scheduleOf(item reconcile.Request) *schedule {
	if q.items[item] == nil {
		q.items[item] = &schedule{}
	}
	return q.items[item]
}

// Forget resets the backoff of an object. The controller does so immediately before it adds an object again after the
// delay that its reconcile has asked for.
func (q *observedQueue) Forget(item reconcile.Request) {
	q.mu.Lock()
	q.scheduleOf(item).ends = q.active[item]
	q.mu.Unlock()
	q.PriorityQueue.Forget(item)
}

// Get returns the next object.
func (q *observedQueue) Get() (reconcile.Request, bool) {
	item, _, shutdown := q.GetWithPriority()
	return item, shutdown
}

// GetWithPriority returns the next object.
func (q *observedQueue) GetWithPriority() (reconcile.Request, int, bool) {
	q.mu.Lock()
	q.workers++
	q.mu.Unlock()
	item, priority, shutdown := q.PriorityQueue.GetWithPriority()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.workers--
	if shutdown {
		return item, priority, shutdown
	}
	q.active[item] = true
	known := q.scheduleOf(item)
	if !known.polls {
		q.stirred++
	}
	known.taken, known.ends = time.Now(), false
	known.timers = slices.DeleteFunc(known.timers, func(is timer) bool { return is.asked || is.due.Before(known.taken) })
	return item, priority, shutdown
}

// Done ends the reconcile of an object.
func (q *observedQueue) Done(item reconcile.Request) {
	q.mu.Lock()
	delete(q.active, item) // first, because the queue can hand it out again as soon as it is done
	q.items[item].ends = false
	q.mu.Unlock()
	q.PriorityQueue.Done(item)
}

const (
	// late is how late a timer may fire. Only one of an object that was reconciled before stays unfired for longer.
	late = 2 * time.Second
	// patience is how long polls must be in vain. It is longer than all intervals and timeouts of the controllers that
	// a poll could hide, which are a minute.
	patience = 75 * time.Second
)

// pending returns what the queue still does before a deadline, although nothing has changed since a moment.
func (q *observedQueue) pending(since, deadline time.Time) string {
	if waiting := q.Len(); waiting > 0 {
		return fmt.Sprintf("%d objects wait for the controller %s", waiting, q.name)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for item := range q.active {
		return fmt.Sprintf("the controller %s reconciles %s", q.name, item.Name)
	}
	now := time.Now()
	for item, known := range q.items {
		known.timers = slices.DeleteFunc(known.timers, func(is timer) bool { return now.Sub(is.due) > late })
		for _, is := range known.timers {
			// The controller slurmclient only compares counts in memory with the status.
			inVain := is.poll && known.taken.After(since) && (q.name == slurmclient.Name || now.Sub(since) > patience)
			if is.due.Before(deadline) && !inVain {
				return fmt.Sprintf("the controller %s reconciles %s at %s", q.name, item.Name, clockTime(is.due))
			}
		}
	}
	return ""
}

// describe returns the next timer of each object.
func (q *observedQueue) describe() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var lines []string
	for item, known := range q.items {
		if len(known.timers) == 0 {
			continue
		}
		next := slices.MinFunc(known.timers, func(a, b timer) int { return a.due.Compare(b.due) })
		line := fmt.Sprintf("%s: %s at %s", q.name, item.Name, clockTime(next.due))
		if next.poll {
			line += fmt.Sprintf(", as every %s", known.delay)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// started reports whether workers take objects.
func (q *observedQueue) started() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.workers+len(q.active) > 0
}

// stirs returns how often something else than a poll was added or taken.
func (q *observedQueue) stirs() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stirred
}

func clockTime(at time.Time) string { return at.UTC().Format("15:04:05.000") }
