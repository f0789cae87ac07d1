package agent

import (
	"errors"
	"fmt"
	"time"
)

const (
	// restInterval is how often slurmctld is asked when nothing happens.
	restInterval = 30 * time.Second
	// firstQuestion and firstReconfigure are the first delays of a question and a reconfigure after one that did not lead
	// to where it should; each further delay is twice as long, up to restInterval and maxReconfigure.
	firstQuestion    = time.Second
	firstReconfigure = 2 * time.Second
	maxReconfigure   = time.Minute
)

// errDown means that slurmctld does not answer: it is starting, restarting or dead. Waiting may help.
var errDown = errors.New("slurmctld does not answer")

// An action is what a state calls for.
type action int

const (
	wait action = iota
	ask
	reconfigure
)

// An observation is what can be seen without asking anybody.
type observation struct {
	// Files changes whenever the files do, and Slurmctld whenever slurmctld starts.
	Files, Slurmctld string
	// Marker is the hash that the files carry, empty when they are not complete.
	Marker string
}

// An answer is what slurmctld says of itself.
type answer struct {
	Marker  string
	Version string
}

// state is what the agent knows. Its methods return the state that follows and do nothing else.
type state struct {
	seen      observation
	running   answer
	known     bool // running is what slurmctld answered to the last question
	checkedAt time.Time
	lastError string

	nextQuestion    time.Time
	questions       int // in a row without the answer that we want
	nextReconfigure time.Time
	attempts        int // reconfigures in a row without success
	reconfigures    int // since the agent started
}

// next decides what to do.
func (s state) next(now time.Time, seen observation) (state, action) {
	if seen.Marker != s.seen.Marker {
		// Files that have not been tried yet deserve a prompt try, whatever became of others.
		s.attempts, s.nextReconfigure = 0, time.Time{}
	}
	if seen != s.seen {
		s.seen, s.questions, s.nextQuestion = seen, 0, time.Time{}
	}
	switch {
	case !now.Before(s.nextQuestion):
		return s, ask
	case s.known && !s.applied() && seen.Marker != "" && !now.Before(s.nextReconfigure):
		return s, reconfigure
	default:
		return s, wait
	}
}

// applied tells whether slurmctld runs with the files.
func (s state) applied() bool { return s.known && s.running.Marker == s.seen.Marker }

// asked is the state after slurmctld was asked what it runs with.
func (s state) asked(now time.Time, running answer, err error) state {
	s.checkedAt = now
	s.known = err == nil
	if err == nil {
		s.running = running
	}
	if s.applied() || s.known && s.seen.Marker == "" {
		s.questions, s.attempts, s.nextReconfigure = 0, 0, time.Time{}
		s.nextQuestion, s.lastError = now.Add(restInterval), ""
		return s
	}
	s.nextQuestion = now.Add(doubled(firstQuestion, s.questions, restInterval))
	s.questions++
	switch {
	case err != nil && s.attempts > 0 && errors.Is(err, errDown):
		s.lastError = fmt.Sprintf("after reconfigure %d to %s: %v", s.attempts, s.seen.Marker, err)
	case err != nil:
		s.lastError = err.Error()
	case s.attempts > 0 && s.lastError == "":
		s.lastError = fmt.Sprintf("slurmctld still runs with %q after reconfigure %d to %s", running.Marker, s.attempts, s.seen.Marker)
	}
	return s
}

// reconfigured is the state after slurmctld was told to read its files. That it was told says little: slurmctld says yes
// before it reads them, and may die of them. So the next thing to do is to ask.
func (s state) reconfigured(now time.Time, err error) state {
	s.nextReconfigure = now.Add(doubled(firstReconfigure, s.attempts, maxReconfigure))
	s.attempts++
	s.reconfigures++
	s.questions, s.nextQuestion = 0, now
	s.lastError = ""
	if err != nil {
		s.lastError = err.Error()
	}
	return s
}

// doubled is a delay that has been doubled some times.
func doubled(first time.Duration, times int, limit time.Duration) time.Duration {
	for ; times > 0 && first < limit; times-- {
		first *= 2
	}
	return min(first, limit)
}

// Report is what the agent tells the operator.
type Report struct {
	// FilesHash is the marker in the files, empty while they have none.
	FilesHash string `json:"filesHash"`
	// RunningHash is the marker that slurmctld ran with when it last answered.
	RunningHash  string `json:"runningHash"`
	SlurmVersion string `json:"slurmVersion"`
	// Reconfigures counts those since the agent started.
	Reconfigures int `json:"reconfigures"`
	// LastError is why slurmctld does not run with the files, empty when it does.
	LastError string    `json:"lastError,omitempty"`
	CheckedAt time.Time `json:"checkedAt"`
}

func (s state) report() Report {
	return Report{
		FilesHash:    s.seen.Marker,
		RunningHash:  s.running.Marker,
		SlurmVersion: s.running.Version,
		Reconfigures: s.reconfigures,
		LastError:    s.lastError,
		CheckedAt:    s.checkedAt,
	}
}
