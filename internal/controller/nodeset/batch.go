package nodeset

import (
	"context"
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

// slowly does something for each index below n: one, then twice as many after each batch in which all went well, then as many
// at a time as are allowed. What is wrong with one pod is usually wrong with all, so it begins nothing more after an error.
func slowly(ctx context.Context, n int, do func(index int) error) error {
	done := 0
	for size := 1; size < podsAtOnce && done < n && timely(ctx); size *= 2 {
		begin := done
		done = min(begin+size, n)
		if err := evenly(ctx, done-begin, podsAtOnce, func(index int) error { return do(begin + index) }); err != nil {
			return err
		}
	}
	group, unfailed := errgroup.WithContext(ctx)
	group.SetLimit(podsAtOnce)
	for ; done < n && unfailed.Err() == nil && timely(ctx); done++ {
		index := done
		group.Go(func() error { return do(index) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
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
