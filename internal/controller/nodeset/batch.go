package nodeset

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// A few limits keep one NodeSet from holding up others, or the API server.
const (
	// widest is how many requests are under way at once.
	widest = 64
	// most is how many pods are created or deleted in one reconcile.
	most = 1000
)

// slowly does something for each index below n: one, then twice as many after each batch in which all went well. What is wrong
// with one pod is usually wrong with all, so it stops after a batch with an error.
func slowly(ctx context.Context, n int, do func(index int) error) error {
	for done, size := 0, 1; done < n; size *= 2 {
		size = min(size, widest, n-done)
		if err := evenly(size, func(index int) error { return do(done + index) }); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		done += size
	}
	return nil
}

// evenly does something for each index below n, some at a time, and returns one of the errors. One that fails does not stop
// the others.
func evenly(n int, do func(index int) error) error {
	var group errgroup.Group
	group.SetLimit(widest)
	for index := range n {
		group.Go(func() error { return do(index) })
	}
	return group.Wait()
}
