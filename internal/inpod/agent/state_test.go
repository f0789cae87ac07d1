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

// settled is a state in which slurmctld was just found to run with the old files.
func settled() state {
	s, _ := state{}.next(start, oldConf)
	return s.asked(start, answer{Marker: "aaa", Version: "26.05.5"}, nil)
}

// told is a state in which slurmctld was just told to read the new files.
func told(err error) state {
	s, _ := settled().next(start, newConf)
	s = s.asked(start, answer{Marker: "aaa"}, nil)
	return s.reconfigured(start, err)
}

func TestNextAction(t *testing.T) {
	tests := map[string]struct {
		state state
		after time.Duration
		seen  observation
		want  action
	}{
		"asks at the start":                            {state{}, 0, oldConf, ask},
		"rests when slurmctld runs with the files":     {settled(), 29 * time.Second, oldConf, wait},
		"asks rarely at rest":                          {settled(), 30 * time.Second, oldConf, ask},
		"asks when the files change":                   {settled(), time.Second, newConf, ask},
		"asks when slurmctld starts again":             {settled(), time.Second, observation{Files: "..1", Slurmctld: "pid 2", Marker: "aaa"}, ask},
		"asks when the files lose their marker":        {settled(), time.Second, observation{Files: "..3", Slurmctld: "pid 1"}, ask},
		"reads back after a reconfigure":               {told(nil), 0, newConf, ask},
		"reads back after a reconfigure that failed":   {told(errors.New("no")), 0, newConf, ask},
		"waits for slurmctld that went away":           {told(nil).asked(start, answer{}, errDown), 500 * time.Millisecond, newConf, wait},
		"asks for slurmctld that went away":            {told(nil).asked(start, answer{}, errDown), time.Second, newConf, ask},
		"never reconfigures what does not answer":      {told(nil).asked(start.Add(time.Minute), answer{}, errDown), time.Minute, newConf, wait},
		"reconfigures when the files are not in use":   {state{}.asked(start, answer{}, nil).withSeen(oldConf), 0, oldConf, reconfigure},
		"does not reconfigure again at once":           {told(nil).asked(start, answer{Marker: "aaa"}, nil), 500 * time.Millisecond, newConf, wait},
		"leaves slurmctld alone with incomplete files": {state{}.asked(start, answer{Marker: "aaa"}, nil), 0, observation{}, wait},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, got := test.state.next(start.Add(test.after), test.seen); got != test.want {
				t.Errorf("action %d, want %d", got, test.want)
			}
		})
	}
}

// withSeen is the state after it has seen an observation and asked because of it.
func (s state) withSeen(seen observation) state {
	next, _ := s.next(start, seen)
	return next.asked(start, s.running, nil)
}

func TestLastErrorSaysWhy(t *testing.T) {
	refusal := errors.New("scontrol reconfigure: fatal: Unable to process configuration file")
	down := fmt.Errorf("%w: connect failure", errDown)
	tests := map[string]struct {
		state state
		want  string
	}{
		"nothing when slurmctld runs with the files": {settled(), ""},
		"slurmctld is away":                          {settled().asked(start, answer{}, down), "slurmctld does not answer: connect failure"},
		"slurmctld died of a reconfigure": {
			told(nil).asked(start, answer{}, down),
			"after reconfigure 1 to bbb: slurmctld does not answer: connect failure",
		},
		"the files are refused": {told(refusal).asked(start, answer{Marker: "aaa"}, nil), refusal.Error()},
		"a reconfigure changed nothing": {
			told(nil).asked(start, answer{Marker: "aaa"}, nil),
			`slurmctld still runs with "aaa" after reconfigure 1 to bbb`,
		},
		"forgotten after success": {told(refusal).asked(start, answer{Marker: "bbb"}, nil), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.state.report().LastError); diff != "" {
				t.Errorf("last error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDelaysDouble(t *testing.T) {
	var got []time.Duration
	for times := range 7 {
		got = append(got, doubled(firstReconfigure, times, maxReconfigure)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{2, 4, 8, 16, 32, 60, 60}, got); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
}
