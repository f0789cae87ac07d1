// Package growth finds leaks: figures of a process that grow as long as it runs.
//
// A process that is restarted starts again from zero, so samples are ordered by the age of the process they are from, not
// by the time of day. The first quarter of them is left out, since caches fill up then. The second and the last quarter are
// compared by their medians, which a garbage collection or a short burst of work does not move.
package growth

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Fewest is how many samples a judgement needs.
const Fewest = 40

// A Sample is the value of a figure when its process had run for Age.
type Sample struct {
	Age   time.Duration
	Value float64
}

// A Tolerance is how much a figure may grow: by a share of what it was, and by a fixed amount.
type Tolerance struct{ Share, Amount float64 }

// Check returns an error if a figure grew by more than the tolerance, or if there are too few samples to say.
func Check(samples []Sample, tolerance Tolerance) error {
	if len(samples) < Fewest {
		return fmt.Errorf("%d samples are too few: %d are needed", len(samples), Fewest)
	}
	sorted := slices.SortedStableFunc(slices.Values(samples), func(a, b Sample) int { return cmp.Compare(a.Age, b.Age) })
	quarter := len(sorted) / 4
	early, late := sorted[quarter:2*quarter], sorted[len(sorted)-quarter:]
	before, after := median(early), median(late)
	if limit := before*(1+tolerance.Share) + tolerance.Amount; after > limit {
		return fmt.Errorf("it grew from %.4g (process age %s to %s) to %.4g (%s to %s), and %.4g is the limit",
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
