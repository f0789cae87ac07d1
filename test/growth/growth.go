// Package growth detects leaks: figures of a process that grow as long as it runs.
//
// A restarted process starts from zero, so samples are ordered by the age of their process, not by the time of day. The
// first quarter is ignored, because caches fill up then. The medians of the second and the last quarter are compared,
// because a garbage collection or a short burst of work does not change them.
package growth

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// MinSamples is the number of samples that Check needs.
const MinSamples = 40

// A Sample is the value of a figure at an age of its process.
type Sample struct {
	Age   time.Duration
	Value float64
}

// A Tolerance is how much a figure may grow: by a share of its earlier value plus a fixed amount.
type Tolerance struct{ Share, Amount float64 }

// Check returns an error if a figure grew by more than the tolerance, or if there are too few samples.
func Check(samples []Sample, tolerance Tolerance) error {
	if len(samples) < MinSamples {
		return fmt.Errorf("%d samples are too few: %d are needed", len(samples), MinSamples)
	}
	sorted := slices.SortedStableFunc(slices.Values(samples),
		func(a, b Sample) int { return cmp.Compare(a.Age, b.Age) })
	quarter := len(sorted) / 4
	early, late := sorted[quarter:2*quarter], sorted[len(sorted)-quarter:]
	before, after := median(early), median(late)
	if limit := before*(1+tolerance.Share) + tolerance.Amount; after > limit {
		return fmt.Errorf("it grew from %.4g (process age %s to %s) to %.4g (%s to %s); the limit is %.4g",
			before, age(early[0]), age(early[len(early)-1]), after, age(late[0]), age(late[len(late)-1]), limit)
	}
	return nil
}

func age(sample Sample) time.Duration { return sample.Age.Round(time.Second) }

func median(samples []Sample) float64 {
	values := make([]float64, 0, len(samples))
	for _, sample := range samples {
		values = append(values, sample.Value)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
