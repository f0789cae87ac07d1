package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/schedule"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

type schedules = []slinkyv1beta1.ElasticSchedule

// windows returns the windows of schedules.
func windows(t *testing.T, schedules schedules) []schedule.Window {
	t.Helper()
	parsed, err := schedule.Of(&slinkyv1beta1.NodeSetElastic{Schedules: schedules})
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// office is Mon to Fri from 07:00 to 19:00 in Berlin.
var office = slinkyv1beta1.ElasticSchedule{
	WarmReplicas: 8, Days: []slinkyv1beta1.Weekday{"Mon", "Tue", "Wed", "Thu", "Fri"}, From: "07:00", To: "19:00",
	TimeZone: "Europe/Berlin",
}

// TestBoundaries follows schedules from one boundary to the next. The golden files show each in UTC and in local time.
func TestBoundaries(t *testing.T) {
	at := func(zone, from, to string) slinkyv1beta1.ElasticSchedule {
		return slinkyv1beta1.ElasticSchedule{WarmReplicas: 4, From: from, To: to, TimeZone: zone}
	}
	var boundaries strings.Builder
	for _, test := range []struct {
		name      string
		schedules schedules
		from      string
		count     int
	}{
		{"a week of office hours", schedules{office}, "2026-03-02T00:00:00Z", 11},
		{"office hours over the begin of daylight saving time", schedules{office}, "2026-03-27T00:00:00Z", 4},
		{"office hours over the end of daylight saving time", schedules{office}, "2026-10-23T00:00:00Z", 4},
		{"nights, which end on the next day", schedules{at("Europe/Berlin", "22:00", "06:00")}, "2026-03-28T12:00:00Z", 4},
		{"a night in which the clock is set back", schedules{at("Europe/Berlin", "22:00", "06:00")},
			"2026-10-24T12:00:00Z", 4},
		{"a skipped begin", schedules{at("Europe/Berlin", "02:30", "05:00")}, "2026-03-28T12:00:00Z", 4},
		{"a skipped end", schedules{at("Europe/Berlin", "01:00", "02:30")}, "2026-03-28T12:00:00Z", 4},
		{"a skipped window", schedules{at("Europe/Berlin", "02:10", "02:50")}, "2026-03-28T00:00:00Z", 4},
		{"a skipped window, once a week", schedules{{
			WarmReplicas: 4, Days: []slinkyv1beta1.Weekday{"Sun"}, From: "02:10", To: "02:50", TimeZone: "Europe/Berlin",
		}}, "2026-03-23T00:00:00Z", 2},
		{"a repeated begin", schedules{at("Europe/Berlin", "02:30", "05:00")}, "2026-10-24T12:00:00Z", 4},
		{"a repeated end", schedules{at("Europe/Berlin", "01:00", "02:30")}, "2026-10-24T12:00:00Z", 4},
		{"a repeated window", schedules{at("Europe/Berlin", "02:10", "02:50")}, "2026-10-24T12:00:00Z", 4},
		{"a change at midnight", schedules{at("America/Santiago", "00:00", "24:00")}, "2026-09-05T12:00:00Z", 3},
		{"a change by half an hour", schedules{at("Australia/Lord_Howe", "01:45", "02:15")}, "2026-10-03T00:00:00Z", 4},
		{"a skipped day", schedules{at("Pacific/Apia", "08:00", "16:00")}, "2011-12-29T12:00:00Z", 5},
		{"the larger of two windows", schedules{office, {WarmReplicas: 2, From: "00:00", To: "24:00", TimeZone: "UTC"}},
			"2026-03-02T00:00:00Z", 5},
		{"once a week", schedules{{WarmReplicas: 1, Days: []slinkyv1beta1.Weekday{"Sun"}, From: "23:00", To: "01:00"}},
			"2026-03-02T02:00:00Z", 4},
	} {
		fmt.Fprintf(&boundaries, "# %s\n", test.name)
		now, err := time.Parse(time.RFC3339, test.from)
		if err != nil {
			t.Fatal(err)
		}
		parsed := windows(t, test.schedules)
		for range test.count {
			warm, next := schedule.At(parsed, now)
			before, _ := schedule.At(parsed, next.Add(-time.Nanosecond))
			if before != warm {
				t.Errorf("%s: %d from %s, but %d right before %s", test.name, warm, now, before, next)
			}
			fmt.Fprintf(&boundaries, "%d until %s = %s\n", warm, next.UTC().Format("2006-01-02 15:04"),
				next.In(parsed[0].Zone).Format("Mon 15:04 MST"))
			now = next
		}
	}
	golden.Compare(t, "boundaries.golden", boundaries.String())
}

// TestEveryMinuteAgreesWithBoundaries compares the windows with the local clock, each minute of the weekends on which
// it changes, except for the hours that it skips or repeats.
func TestEveryMinuteAgreesWithBoundaries(t *testing.T) {
	parsed := windows(t, schedules{{WarmReplicas: 1, From: "06:00", To: "01:00", TimeZone: "Europe/Berlin"}})
	for _, begin := range []string{"2026-03-28T00:00:00Z", "2026-10-24T00:00:00Z"} {
		now, err := time.Parse(time.RFC3339, begin)
		if err != nil {
			t.Fatal(err)
		}
		for end := now.Add(72 * time.Hour); now.Before(end); now = now.Add(time.Minute) {
			hour, want := now.In(parsed[0].Zone).Hour(), 0
			if hour >= 6 || hour < 1 {
				want = 1
			}
			if got, next := schedule.At(parsed, now); got != want || !next.After(now) {
				t.Fatalf("%s: %d until %s, want %d", now.In(parsed[0].Zone), got, next, want)
			}
		}
	}
}

// TestNothingChangesBetweenBoundaries checks random schedules at random moments, half of them near a change of the
// local clock.
func TestNothingChangesBetweenBoundaries(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	zones := []string{"UTC", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Gaza"}
	clock := func() string { return fmt.Sprintf("%02d:%02d", random.IntN(24), random.IntN(60)) }
	for range 2000 {
		var some schedules
		for i := range 1 + random.IntN(3) {
			from, to := clock(), clock()
			if from == to {
				to = "24:00"
			}
			some = append(some, slinkyv1beta1.ElasticSchedule{
				WarmReplicas: int32(i + 1), From: from, To: to, TimeZone: zones[random.IntN(len(zones))],
				Days: []slinkyv1beta1.Weekday{"Mon", "Sun", "Wed", "Sat"}[:1+random.IntN(4)],
			})
		}
		parsed := windows(t, some)
		now := time.Unix(1_300_000_000+random.Int64N(600_000_000), 0)
		if _, change := now.In(parsed[0].Zone).ZoneBounds(); !change.IsZero() && random.IntN(2) == 0 {
			now = change.Add(time.Duration(random.Int64N(int64(48*time.Hour))) - 24*time.Hour)
		}
		warm, next := schedule.At(parsed, now)
		if !next.After(now) || next.After(now.Add(15*24*time.Hour)) {
			t.Fatalf("%+v at %s: the next boundary is at %s", some, now, next)
		}
		for range 20 {
			between := now.Add(time.Duration(random.Int64N(int64(next.Sub(now)))))
			if got, _ := schedule.At(parsed, between); got != warm {
				t.Fatalf("%+v: %d at %s, %d at %s, without a boundary before %s", some, warm, now, got, between, next)
			}
		}
	}
}

func TestNoSchedules(t *testing.T) {
	for name, elastic := range map[string]*slinkyv1beta1.NodeSetElastic{"fixed": nil, "elastic": {}} {
		parsed, err := schedule.Of(elastic)
		if warm, next := schedule.At(parsed, time.Now()); err != nil || warm != 0 || !next.IsZero() {
			t.Errorf("%s: %d until %s, %v", name, warm, next, err)
		}
	}
}

func TestInvalidSchedulesAreLeftOut(t *testing.T) {
	const remedy = "; use a name of the IANA time zone database, such as Europe/Berlin"
	tests := map[string]struct {
		edit func(*slinkyv1beta1.ElasticSchedule)
		want string
	}{
		"unknown zone": {
			func(s *slinkyv1beta1.ElasticSchedule) { s.TimeZone = "Europe/Berlim" },
			`spec.elastic.schedules[0].timeZone: there is no time zone "Europe/Berlim"` + remedy,
		},
		"zone of the operator": {
			func(s *slinkyv1beta1.ElasticSchedule) { s.TimeZone = "Local" },
			`spec.elastic.schedules[0].timeZone: there is no time zone "Local"` + remedy,
		},
		"begin": {
			func(s *slinkyv1beta1.ElasticSchedule) { s.From = "24:30" },
			`spec.elastic.schedules[0].from: "24:30" is not a time of day; use for example 07:00`,
		},
		"end": {
			func(s *slinkyv1beta1.ElasticSchedule) { s.To = "7 pm" },
			`spec.elastic.schedules[0].to: "7 pm" is not a time of day; use for example 07:00`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			broken := office
			test.edit(&broken)
			parsed, err := schedule.Of(&slinkyv1beta1.NodeSetElastic{Schedules: schedules{broken, office}})
			if err == nil || len(parsed) != 1 {
				t.Fatalf("got %d windows, %v", len(parsed), err)
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
