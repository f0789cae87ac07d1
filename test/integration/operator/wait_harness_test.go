//go:build integration

package operator_test

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
)

// pollTimeout is how long a test waits for a condition while something still changes. It only has to be longer than a
// busy computer needs.
const pollTimeout = 5 * time.Minute

const (
	pollInterval = 50 * time.Millisecond
	// Waits find out whether anything can still change, this often, and conclude that nothing can after so many times. In
	// between, goroutines hand events on: from a cache to a queue, from a mirror to a queue.
	watchInterval, watchRounds = 250 * time.Millisecond, 8
	// busyInterval is the same while something changes. It saves the API server requests.
	busyInterval = time.Second
)

// await waits until a check returns no error. The test fails if nothing can change any more, or after pollTimeout, and
// says why, with the object that the check is about.
func (w *world) await(tb testing.TB, what string, about client.Object, check func(context.Context) error) {
	tb.Helper()
	deadline := time.Now().Add(pollTimeout)
	ctx, cancel := context.WithDeadline(tb.Context(), deadline)
	defer cancel()
	watch := &vigil{world: w, deadline: deadline}
	watched := time.Now()
	var last error
	for {
		err := check(ctx)
		switch {
		case err == nil:
			return
		case last == nil || ctx.Err() == nil: // the last result of check says more than that the deadline was exceeded
			last = err
		}
		switch {
		case ctx.Err() != nil:
			tb.Fatalf("waiting for %s: %v\nnot within %s, and the operator is not idle: %s\n%s", what, last, pollTimeout,
				watch.why, w.describe(tb, about))
		case watch.over && !watch.confirms(last): // the check does not see what the vigil has seen
		case watch.over:
			tb.Fatalf("waiting for %s: %v\nnothing can change any more: the operator is idle since %s\n%s", what, last,
				clockTime(watch.since), w.describe(tb, about))
		case time.Since(watched) > watch.interval():
			watch.look(ctx, last)
			watched = time.Now()
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
		}
	}
}

// A vigil finds out whether anything can still change in a world, while a test waits.
//
// Nothing can change if, over a span of time, no object and nothing in Slurm has changed, and at its end nothing is
// left that could: the caches and mirrors of the operator have shown the present state from the begin of the span on,
// its queues are empty, no timer is due before the deadline, no request is in flight, and the loops of the test have
// seen the present state too. Each of these is observed, so a slow computer only makes the span longer.
type vigil struct {
	world    *world
	deadline time.Time
	// over reports that nothing can change any more; until then, why says what can.
	over bool
	why  string

	since  time.Time // the begin of the span; zero for none
	rounds int
	state  state
}

// A state is what must not change in the span.
type state struct {
	operator *runner
	stirs    int    // of the queues
	slurm    string // slurmctld's records
	objects  string
	problem  string // the result of the test's check
}

// address is an address in memory, which errors contain when they print pointers.
var address = regexp.MustCompile(`0x[0-9a-f]+`)

// interval is how often to look.
func (v *vigil) interval() time.Duration {
	if v.since.IsZero() {
		return busyInterval
	}
	return watchInterval
}

// confirms reports whether the test's check still has the same result, and starts the vigil again if not.
func (v *vigil) confirms(problem error) bool {
	if address.ReplaceAllString(problem.Error(), "") == v.state.problem {
		return true
	}
	v.over, v.since = false, time.Time{}
	return false
}

// look updates the vigil, with the current result of the test's check.
func (v *vigil) look(ctx context.Context, problem error) {
	v.world.mu.Lock()
	operator := v.world.operator
	v.world.mu.Unlock()
	now := state{operator: operator, problem: address.ReplaceAllString(problem.Error(), "")}
	if v.why = operator.starting(); v.why != "" {
		v.since = time.Time{}
		return
	}
	now.stirs = operator.stirs()
	slurmState, steady := v.world.slurm.Steady()
	now.slurm = slurmState
	now.objects = v.state.objects
	if v.since.IsZero() || now != v.state {
		v.begin(ctx, now)
		return
	}
	v.rounds++
	if v.why = v.world.pending(operator, v.since, v.deadline); v.why != "" {
		return
	}
	if steady >= 0 && time.Now().Add(steady).Before(v.deadline) {
		v.why = fmt.Sprintf("Slurm changes in %s", steady)
		return
	}
	if v.rounds < watchRounds {
		v.why = "it has just become idle"
		return
	}
	v.why = v.read(ctx, &now)
	if v.why == "" && now == v.state && operator.stirs() == now.stirs {
		v.over = true
		return
	}
	v.begin(ctx, now)
}

// begin begins a span, unless the operator has yet to receive a change.
func (v *vigil) begin(ctx context.Context, now state) {
	v.since, v.rounds = time.Time{}, 0
	if v.why = v.read(ctx, &now); v.why == "" {
		v.since, v.state, v.why = time.Now(), now, "something has just changed"
	}
}

// read reads the versions of all objects. It returns why the operator does not have them.
func (v *vigil) read(ctx context.Context, now *state) (why string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	objects, behind, err := now.operator.cache.versions(ctx, v.world)
	switch {
	case err != nil:
		return fmt.Sprintf("its cache cannot be read: %v", err)
	case behind != "":
		return "it has not received the last change of " + behind
	}
	now.objects = objects
	return ""
}

// pending returns what happens in the world before a deadline, although nothing has changed since a moment.
func (w *world) pending(operator *runner, since, deadline time.Time) string {
	if why := operator.pending(since, deadline); why != "" {
		return why
	}
	if why := w.flights.pending(since); why != "" {
		return "the test: " + why
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for loop := range w.loops {
		if !loop.since(since, 2) {
			return "the test has not reacted yet"
		}
	}
	return ""
}

// loop returns the beats of a loop of the test that reacts to the operator, and a function that ends it.
func (w *world) loop() (loop *beats, end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	loop = &beats{}
	w.loops[loop] = true
	return loop, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.loops, loop)
	}
}

// A runner is a running operator, as seen by vigils.
type runner struct {
	flights flights
	cache   observedCache

	mu       sync.Mutex
	queues   []*observedQueue
	sessions map[*session]bool
}

// controllers is how many controllers the operator has.
const controllers = 7

// starting returns why the operator does not work: it is not running, does not lead, or has just been started.
func (r *runner) starting() string {
	if r == nil {
		return "it is not running"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	working := 0
	for _, queue := range r.queues {
		if queue.started() {
			working++
		}
	}
	if working != controllers {
		return fmt.Sprintf("%d of %d controllers have been started", working, controllers)
	}
	return ""
}

func (r *runner) stirs() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := 0
	for _, queue := range r.queues {
		all += queue.stirs()
	}
	return all
}

// pending returns what the operator does before a deadline, although nothing has changed since a moment.
func (r *runner) pending(since, deadline time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, queue := range r.queues {
		if why := queue.pending(since, deadline); why != "" {
			return why
		}
	}
	for session := range r.sessions {
		if !session.has(since) {
			return "it has not polled Slurm yet"
		}
	}
	return r.flights.pending(since)
}

// newQueue creates the queue of a controller.
func (r *runner) newQueue(name string,
	limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	queue := newObservedQueue(name, limiter)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queues = append(r.queues, queue)
	return queue
}

// newCache creates the operator's cache.
func (r *runner) newCache(config *clientrest.Config, options cache.Options) (cache.Cache, error) {
	var err error
	r.cache.Cache, err = cache.New(config, options)
	return &r.cache, err
}

// dial returns a function that connects to Slurm by means of another one.
func (r *runner) dial(next func(rest.Options) (slurm.Client, error)) func(rest.Options) (slurm.Client, error) {
	return func(options rest.Options) (slurm.Client, error) {
		connected, err := next(options)
		if err != nil {
			return nil, err
		}
		opened := &session{Client: connected.(*rest.Client)}
		opened.close = func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.sessions, opened)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sessions[opened] = true
		return opened, nil
	}
}
