// Package schedule evaluates weekly schedules: how many idle Slurm nodes should be up at a moment, and when that
// changes next.
//
// A window begins and ends at times of the local clock, which skips an hour or repeats one when daylight saving time
// begins or ends. Each boundary is the first moment at which the local clock shows its time or, if that is skipped, a
// later one. So every window opens at most once a day, and never closes before it opens.
package schedule

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // the operator's image has no time zones

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/invalid"
)

// A Window is a time of the week.
type Window struct {
	// Warm is how many idle Slurm nodes should be up.
	Warm int
	// Days are those on which it opens.
	Days []time.Weekday
	// From and To are times of the local clock, since midnight. To is on the next day if it is more than 24 hours.
	From, To time.Duration
	Zone     *time.Location
}

const day = 24 * time.Hour

// weekdays are the days of the API.
var weekdays = map[slinkyv1beta1.Weekday]time.Weekday{
	"Mon": time.Monday, "Tue": time.Tuesday, "Wed": time.Wednesday, "Thu": time.Thursday, "Fri": time.Friday,
	"Sat": time.Saturday, "Sun": time.Sunday,
}

// allDays are the default.
var allDays = []time.Weekday{
	time.Sunday, time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday, time.Saturday,
}

// Of returns the windows of an elastic NodeSet. Schedules that are not valid are left out, and the error, an
// *invalid.Field, is about the first of them.
func Of(elastic *slinkyv1beta1.NodeSetElastic) ([]Window, error) {
	if elastic == nil {
		return nil, nil
	}
	var windows []Window
	var first error
	for i := range elastic.Schedules {
		window, err := parse(&elastic.Schedules[i], fmt.Sprintf("spec.elastic.schedules[%d]", i))
		switch {
		case err == nil:
			windows = append(windows, window)
		case first == nil:
			first = err
		}
	}
	return windows, first
}

func parse(schedule *slinkyv1beta1.ElasticSchedule, path string) (Window, error) {
	zone, err := time.LoadLocation(schedule.TimeZone)
	if err != nil || schedule.TimeZone == "Local" {
		return Window{}, invalid.New(path+".timeZone",
			"there is no time zone %q; use a name of the IANA time zone database, such as Europe/Berlin", schedule.TimeZone)
	}
	from, err := clock(schedule.From)
	if err != nil {
		return Window{}, invalid.New(path+".from", "%w", err)
	}
	to, err := clock(schedule.To)
	if err != nil {
		return Window{}, invalid.New(path+".to", "%w", err)
	}
	if to <= from {
		to += day
	}
	window := Window{Warm: int(schedule.WarmReplicas), Days: allDays, From: from, To: to, Zone: zone}
	if len(schedule.Days) > 0 {
		window.Days = make([]time.Weekday, len(schedule.Days))
		for i, name := range schedule.Days {
			window.Days[i] = weekdays[name]
		}
	}
	return window, nil
}

// clock returns a time of day since midnight.
func clock(text string) (time.Duration, error) {
	if text == "24:00" {
		return day, nil
	}
	parsed, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of day; use for example 07:00", text)
	}
	return time.Duration(parsed.Hour())*time.Hour + time.Duration(parsed.Minute())*time.Minute, nil
}

// At returns how many idle Slurm nodes the windows ask for at a moment, the largest number of those that are open, and
// when one of them opens or closes next; zero if there are none.
func At(windows []Window, now time.Time) (warm int, next time.Time) {
	boundary := func(moment time.Time) {
		if moment.After(now) && (next.IsZero() || moment.Before(next)) {
			next = moment
		}
	}
	for _, window := range windows {
		year, month, today := now.In(window.Zone).Date()
		// One that opened yesterday may be open. One that opens once a week may be skipped once.
		for offset := -1; offset <= 14; offset++ {
			if !window.opensOn(year, month, today+offset) {
				continue
			}
			opens := moment(year, month, today+offset, window.From, window.Zone)
			closes := moment(year, month, today+offset, window.To, window.Zone)
			if !opens.Before(closes) {
				continue // the local clock skips all of it
			}
			if !now.Before(opens) && now.Before(closes) {
				warm = max(warm, window.Warm)
			}
			boundary(opens)
			boundary(closes)
		}
	}
	return warm, next
}

// opensOn reports whether a window opens on a day. The local calendar may skip the day.
func (w Window) opensOn(year int, month time.Month, day int) bool {
	return slices.Contains(w.Days, time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Weekday())
}

// moment returns the first moment at which the local clock shows a time of a day, or a later one if that is skipped.
func moment(year int, month time.Month, day int, clock time.Duration, zone *time.Location) time.Time {
	minutes := int(clock / time.Minute)
	wall := time.Date(year, month, day, 0, minutes, 0, 0, time.UTC) // as if the local clock showed UTC
	found := time.Date(year, month, day, 0, minutes, 0, 0, zone)
	_, offset := found.Zone()
	begins, ends := found.ZoneBounds()
	switch shown := found.Add(seconds(offset)); {
	case shown.After(wall): // skipped, and found is after the change
		return begins
	case shown.Before(wall): // skipped, and found is before it
		return ends
	case begins.IsZero():
		return found
	}
	_, before := begins.Add(-time.Second).Zone()
	if earlier := wall.Add(-seconds(before)); earlier.Before(begins) { // shown twice
		return earlier
	}
	return found
}

func seconds(offset int) time.Duration { return time.Duration(offset) * time.Second }
