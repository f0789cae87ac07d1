package nodeset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSlowStartRunsEachItemOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 100, parallelPods, 3*parallelPods + 7} {
		done := make([]atomic.Int32, n)
		begun, err := slowStart(t.Context(), n, func(index int) error { done[index].Add(1); return nil })
		if err != nil || begun != n {
			t.Fatalf("began with %d of %d items: %v", begun, n, err)
		}
		for i := range done {
			if times := done[i].Load(); times != 1 {
				t.Errorf("of %d items, item %d ran %d times", n, i, times)
			}
		}
	}
}

func TestBatchesStopBeforeTheDeadline(t *testing.T) {
	batches := map[string]func(context.Context, func(int) error) error{
		"slowStart": func(ctx context.Context, do func(int) error) error { _, err := slowStart(ctx, 100000, do); return err },
		"inParallel": func(ctx context.Context, do func(int) error) error {
			return inParallel(ctx, 100000, parallelPods, do)
		},
	}
	for name, batch := range batches {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*timeReserve)
				defer cancel()
				begin := time.Now()
				err := batch(ctx, func(int) error { time.Sleep(time.Second); return ctx.Err() })
				if took := time.Since(begin); err != nil || took < 2*timeReserve || took > 2*timeReserve+time.Second {
					t.Errorf("the batch took %s: %v", took, err)
				}
			})
		})
	}
}

func TestSlowStartStopsAfterAnError(t *testing.T) {
	tests := map[string]struct{ fails, most int32 }{
		"of the first item":    {fails: 0, most: 1},
		"in a batch":           {fails: 5, most: 7},
		"after the last batch": {fails: 300, most: 300 + parallelPods},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			failure := errors.New("failure")
			var started atomic.Int32
			_, err := slowStart(t.Context(), 5000, func(index int) error {
				started.Add(1)
				if int32(index) >= test.fails {
					return failure
				}
				return nil
			})
			if !errors.Is(err, failure) || started.Load() > test.most {
				t.Errorf("%d items were started, and the error is %v", started.Load(), err)
			}
		})
	}
}

func TestBadPodDoesNotBlockOthers(t *testing.T) {
	bad := map[int]bool{0: true, 1: true, 7: true, 400: true}
	var good atomic.Int32
	_, err := slowStart(t.Context(), 500, func(index int) error {
		if bad[index] {
			return fmt.Errorf("pod %d is bad (%w)", index, errOnlyThisPod)
		}
		good.Add(1)
		return nil
	})
	if good.Load() != 496 {
		t.Errorf("%d pods were created", good.Load())
	}
	if err == nil || !strings.Contains(err.Error(), "pod 0 is bad") ||
		!strings.Contains(err.Error(), "and 1 more pods") {
		t.Errorf("the error is %v", err)
	}
}

func TestSlowStartGivesUpAfterTooManyBadPods(t *testing.T) {
	var started atomic.Int32
	_, err := slowStart(t.Context(), 5000, func(int) error { started.Add(1); return errOnlyThisPod })
	if err == nil || started.Load() != maxBadPods {
		t.Errorf("%d items were started, and the error is %v", started.Load(), err)
	}
}

func TestSlowStartStopsWhenContextIsCanceled(t *testing.T) {
	canceled := errors.New("canceled")
	ctx, cancel := context.WithCancelCause(t.Context())
	var started atomic.Int32
	_, err := slowStart(ctx, 5000, func(int) error {
		if started.Add(1) == 1000 {
			cancel(canceled)
		}
		return nil
	})
	if !errors.Is(err, canceled) || started.Load() > 1000+parallelPods {
		t.Errorf("%d items were started, and the error is %v", started.Load(), err)
	}
}
