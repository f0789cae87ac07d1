package agent

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	start   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	oldConf = observation{Files: "..1", Slurmctld: "pid 1", Marker: "aaa"}
	newConf = observation{Files: "..2", Slurmctld: "pid 1", Marker: "bbb"}
)

// settled returns a state in which slurmctld runs with the old files.
func settled() state {
	s, _ := state{}.next(start, oldConf)
	return s.queried(start, answer{Marker: "aaa", Version: "26.05.5"}, nil)
}

// afterReconfigure returns a state in which slurmctld was just reconfigured with the new files.
func afterReconfigure(err error) state {
	s, _ := settled().next(start, newConf)
	s = s.queried(start, answer{Marker: "aaa"}, nil)
	return s.reconfigured(start, err)
}

func TestNextAction(t *testing.T) {
	tests := map[string]struct {
		state state
		after time.Duration
		seen  observation
		want  action
	}{
		"queries at the start":                   {state{}, 0, oldConf, query},
		"waits if slurmctld runs with the files": {settled(), 29 * time.Second, oldConf, wait},
		"queries rarely in steady state":         {settled(), 30 * time.Second, oldConf, query},
		"queries when the files change":          {settled(), time.Second, newConf, query},
		"queries when slurmctld restarts": {
			settled(), time.Second, observation{Files: "..1", Slurmctld: "pid 2", Marker: "aaa"}, query,
		},
		"queries when the files lose their marker": {
			settled(), time.Second, observation{Files: "..3", Slurmctld: "pid 1"}, query,
		},
		"queries after a reconfigure":        {afterReconfigure(nil), 0, newConf, query},
		"queries after a failed reconfigure": {afterReconfigure(errors.New("no")), 0, newConf, query},
		"waits if slurmctld is down": {
			afterReconfigure(nil).queried(start, answer{}, errDown), 500 * time.Millisecond, newConf, wait,
		},
		"queries again if slurmctld is down": {
			afterReconfigure(nil).queried(start, answer{}, errDown), time.Second, newConf, query,
		},
		"does not reconfigure if slurmctld is down": {
			afterReconfigure(nil).queried(start.Add(time.Minute), answer{}, errDown), time.Minute, newConf, wait,
		},
		"reconfigures if the files are not in use": {
			state{}.queried(start, answer{}, nil).withSeen(oldConf), 0, oldConf, reconfigure,
		},
		"does not reconfigure again immediately": {
			afterReconfigure(nil).queried(start, answer{Marker: "aaa"}, nil), 500 * time.Millisecond, newConf, wait,
		},
		"does not reconfigure with incomplete files": {
			state{}.queried(start, answer{Marker: "aaa"}, nil), 0, observation{}, wait,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, got := test.state.next(start.Add(test.after), test.seen); got != test.want {
				t.Errorf("action %d, want %d", got, test.want)
			}
		})
	}
}

// withSeen returns the state after an observation and the query that it causes.
func (s state) withSeen(seen observation) state {
	next, _ := s.next(start, seen)
	return next.queried(start, s.running, nil)
}

func TestLastErrorNamesTheCause(t *testing.T) {
	refusal := errors.New("scontrol reconfigure: fatal: Unable to process configuration file")
	down := fmt.Errorf("%w: connect failure", errDown)
	tests := map[string]struct {
		state state
		want  string
	}{
		"nothing when slurmctld runs with the files": {settled(), ""},
		"slurmctld is down": {
			settled().queried(start, answer{}, down), "slurmctld does not answer: connect failure",
		},
		"slurmctld crashed after a reconfigure": {
			afterReconfigure(nil).queried(start, answer{}, down),
			"after reconfigure 1 to bbb: slurmctld does not answer: connect failure",
		},
		"the files are refused": {
			afterReconfigure(refusal).queried(start, answer{Marker: "aaa"}, nil), refusal.Error(),
		},
		"a reconfigure changed nothing": {
			afterReconfigure(nil).queried(start, answer{Marker: "aaa"}, nil),
			`slurmctld still runs with "aaa" after reconfigure 1 to bbb`,
		},
		"cleared after success": {afterReconfigure(refusal).queried(start, answer{Marker: "bbb"}, nil), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.state.report().LastError); diff != "" {
				t.Errorf("last error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDelayDoubles(t *testing.T) {
	var got []time.Duration
	for times := range 7 {
		got = append(got, doubled(firstReconfigure, times, maxReconfigure)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{2, 4, 8, 16, 32, 60, 60}, got); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
}
