package growth_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/growth"
)

const (
	hour   = 720 // samples, one per interval
	steady = 400 // for example goroutines
)

const interval = 5 * time.Second

var tolerance = growth.Tolerance{Share: 0.1, Amount: 20}

// series returns samples of a process that is restarted after every life samples.
func series(samples, life int, value func(age int) float64) []growth.Sample {
	var all []growth.Sample
	for i := range samples {
		age := i % life
		all = append(all, growth.Sample{Age: time.Duration(age) * interval, Value: value(age)})
	}
	return all
}

func TestCheck(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	noise := func() float64 { return 30 * (random.Float64() - 0.5) }
	for name, test := range map[string]struct {
		samples []growth.Sample
		leaks   bool
	}{
		"a steady figure":       {series(hour, hour, func(int) float64 { return steady + noise() }), false},
		"a figure that is zero": {series(hour, hour, func(int) float64 { return 0 }), false},
		"a figure that falls": {
			series(hour, hour, func(age int) float64 { return steady - float64(age)/4 }), false,
		},
		"a cache that fills up": {
			series(hour, hour, func(age int) float64 { return min(steady, 10*float64(age)) }), false,
		},
		"a burst at the end": {
			series(hour, hour,
				func(age int) float64 { return map[bool]float64{true: 9 * steady}[age > hour-60] + steady }),
			false,
		},
		"a saw-tooth": {
			series(hour, hour, func(age int) float64 { return steady + float64(age%24)*10 }), false,
		},
		"a leak": {
			series(hour, hour, func(age int) float64 { return steady + float64(age)/4 + noise() }), true,
		},
		"a leak that starts late": {
			series(hour, hour, func(age int) float64 { return steady + max(0, float64(age-hour*6/10)) }), true,
		},
		"a leak between restarts": {
			series(hour, hour/3, func(age int) float64 { return steady + float64(age)*2/3 + noise() }), true,
		},
		"a leak under a saw-tooth": {
			series(hour, hour, func(age int) float64 { return steady + float64(age%24)*10 + float64(age)/3 }), true,
		},
		"a figure that grows from zero": {series(hour, hour, func(age int) float64 { return float64(age) / 8 }), true},
		"too few samples":               {series(growth.MinSamples-1, hour, func(int) float64 { return steady }), true},
		"no samples":                    {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := growth.Check(test.samples, tolerance)
			if (err != nil) != test.leaks {
				t.Errorf("the result is %v", err)
			}
		})
	}
}
