package nodeset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A few limits keep one NodeSet from holding up others, the API server or slurmctld.
const (
	// mostMarks is how many pods are marked or nodes described in one reconcile, and fewMarks is how many while many are yet to
	// come up, which is more urgent. How many are created or deleted has no limit but time, as with Kubernetes' own controllers: to begin
	// again slowly, after the cache has shown all that was done, takes longer than a thousand pods do.
	mostMarks, fewMarks = 250, 4
	// podsAtOnce is how many pods are created or deleted at once: so many that a busy API server lets them come and go as
	// fast as those of Kubernetes' own controllers.
	podsAtOnce = 256
	// marksAtOnce is how many pods are marked at once.
	marksAtOnce = 16
	// nodesAtOnce is how many nodes are described to Slurm at once: so few that slurmctld has time for its jobs.
	nodesAtOnce = 8
)

// spare is how much of its time a reconcile has left when it begins nothing more of what may be many. The rest is done by the next
// one, which knows what has happened meanwhile.
const spare = 10 * time.Second

// timely tells whether there is time to begin something.
func timely(ctx context.Context) bool {
	end, limited := ctx.Deadline()
	return !limited || time.Until(end) > spare
}

// slowly does something for each index below n: one, then twice as many after each batch that went well, then as many at a time
// as are allowed. What is wrong with one pod is usually wrong with all, so it begins nothing more after an error, unless that is
// of one pod only. Even then it gives up when nothing else happens.
func slowly(ctx context.Context, n int, do func(index int) error) error {
	bad := &badPods{}
	done := 0
	for size := 1; size < podsAtOnce && done < n && timely(ctx); {
		begin := done
		done = min(begin+size, n)
		good := bad.good()
		err := evenly(ctx, done-begin, podsAtOnce, func(index int) error { return bad.note(do(begin + index)) })
		switch {
		case err != nil || bad.hopeless():
			return errors.Join(err, bad.err())
		case bad.good() > good:
			size *= 2
		}
	}
	group, unfailed := errgroup.WithContext(ctx)
	group.SetLimit(podsAtOnce)
	for ; done < n && unfailed.Err() == nil && timely(ctx); done++ {
		index := done
		group.Go(func() error { return bad.note(do(index)) })
	}
	if err := group.Wait(); err != nil {
		return errors.Join(err, bad.err())
	}
	return errors.Join(bad.err(), context.Cause(ctx))
}

// mostBadPods is how many pods may fail in a way that concerns only them, without any success, before it is taken for the fault of
// all; and how many of them are named.
const mostBadPods, namedBadPods = 16, 3

// badPods are the failures that concern one pod each.
type badPods struct {
	mu        sync.Mutex
	succeeded int
	failures  []error
}

// note keeps a failure that concerns one pod, and passes on others.
func (b *badPods) note(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.succeeded++
	case errors.Is(err, errOnlyThisPod):
		b.failures = append(b.failures, err)
	default:
		return err
	}
	return nil
}

func (b *badPods) good() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.succeeded
}

func (b *badPods) hopeless() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.succeeded == 0 && len(b.failures) >= mostBadPods
}

// err names the first of the failures, in the order of their texts, and counts the others.
func (b *badPods) err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.SortFunc(b.failures, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	named := b.failures[:min(len(b.failures), namedBadPods)]
	if more := len(b.failures) - len(named); more > 0 {
		return errors.Join(errors.Join(named...), fmt.Errorf("and %d more pods", more))
	}
	return errors.Join(named...)
}

// evenly does something for each index below n, some at a time, and returns one of the errors. One that fails does not stop
// the others.
func evenly(ctx context.Context, n, atOnce int, do func(index int) error) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for index := 0; index < n && timely(ctx); index++ {
		group.Go(func() error { return do(index) })
	}
	return group.Wait()
}
