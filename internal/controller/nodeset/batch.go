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

// These limits protect other NodeSets, the API server and slurmctld from one large NodeSet.
const (
	// updatesPerReconcile is how many pods get new conditions, or how many descriptions Slurm gets, in one reconcile, or
	// 1/updateRounds of all pods if that is more: each reconcile reads and plans the whole NodeSet.
	// updatesWhileStarting is the same while many pods have yet to start, which is more urgent. Creations and deletions
	// are limited by time alone, as in Kubernetes' own controllers: another slow start, after the cache has caught up,
	// would take longer than a thousand pods.
	updatesPerReconcile, updateRounds, updatesWhileStarting = 250, 16, 4
	// parallelPods is how many pods are created or deleted in parallel at most: enough to be as fast as Kubernetes' own
	// controllers. A busy API server takes fewer: see Reconciler.Window.
	parallelPods = 256
	// parallelUpdates is how many pods are patched in parallel.
	parallelUpdates = 16
	// parallelSlurmUpdates is how many Slurm nodes are updated in parallel: few, so that slurmctld has time for jobs.
	parallelSlurmUpdates = 8
)

// timeReserve is how long before its deadline a reconcile starts no more writes of a batch. The next reconcile does the
// rest, with a newer snapshot.
const timeReserve = 10 * time.Second

// hasTime reports whether there is time to start another write.
func hasTime(ctx context.Context) bool {
	end, limited := ctx.Deadline()
	return !limited || time.Until(end) > timeReserve
}

// slowStart calls do for each index below n: once, then twice as often after each successful batch, up to parallelPods
// in parallel. An error usually concerns all pods, so it starts nothing more after one, unless it concerns a single pod
// only. If such errors are all that happens, it gives up too. It returns how many indices it has begun with: fewer than
// n after an error, or if there is not enough time.
func slowStart(ctx context.Context, n int, do func(index int) error) (begun int, err error) {
	bad := &badPods{}
	done := 0
	for size := 1; size < parallelPods && done < n && hasTime(ctx); {
		begin := done
		done = min(begin+size, n)
		succeeded := bad.successes()
		err := inParallel(ctx, done-begin, parallelPods, func(index int) error { return bad.note(do(begin + index)) })
		switch {
		case err != nil || bad.hopeless():
			return done, errors.Join(err, bad.err())
		case bad.successes() > succeeded:
			size *= 2
		}
	}
	group, unfailed := errgroup.WithContext(ctx)
	group.SetLimit(parallelPods)
	for ; done < n && unfailed.Err() == nil && hasTime(ctx); done++ {
		index := done
		group.Go(func() error { return bad.note(do(index)) })
	}
	if err := group.Wait(); err != nil {
		return done, errors.Join(err, bad.err())
	}
	return done, errors.Join(bad.err(), context.Cause(ctx))
}

// maxBadPods is how many pods may fail without any success before the error counts as one of all pods; namedBadPods is
// how many of them the error names.
const maxBadPods, namedBadPods = 16, 3

// badPods collects errors that concern one pod each.
type badPods struct {
	mu        sync.Mutex
	succeeded int
	failures  []error
}

// note keeps an error that concerns one pod, and returns any other.
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

func (b *badPods) successes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.succeeded
}

func (b *badPods) hopeless() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.succeeded == 0 && len(b.failures) >= maxBadPods
}

// err returns the first errors, ordered by text, and the number of the others.
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

// inParallel calls do for each index below n, at most limit at a time, and returns one of the errors. An error does not
// stop the others.
func inParallel(ctx context.Context, n, limit int, do func(index int) error) error {
	var group errgroup.Group
	group.SetLimit(limit)
	for index := 0; index < n && hasTime(ctx); index++ {
		group.Go(func() error { return do(index) })
	}
	return group.Wait()
}
