package agent

import (
	"errors"
	"fmt"
	"time"
)

const (
	// idleInterval is how often slurmctld is queried in steady state.
	idleInterval = 30 * time.Second
	// firstQuery and firstReconfigure are the initial delays after an unsuccessful query or reconfigure; they double
	// with each further one, up to idleInterval and maxReconfigure.
	firstQuery       = time.Second
	firstReconfigure = 2 * time.Second
	maxReconfigure   = time.Minute
)

// errDown means that slurmctld does not answer: it is starting, restarting or down. It may recover.
var errDown = errors.New("slurmctld does not answer")

// An action is what a state requires.
type action int

const (
	wait action = iota
	query
	reconfigure
)

// An observation is what is known without querying slurmctld.
type observation struct {
	// Files changes whenever the files do, and Slurmctld whenever slurmctld starts.
	Files, Slurmctld string
	// Marker is the hash in the files, empty if they are not complete.
	Marker string
}

// An answer is slurmctld's answer to a query.
type answer struct {
	Marker  string
	Version string
}

// state is what the agent knows. Its methods return the next state and have no side effects.
type state struct {
	seen      observation
	running   answer
	since     time.Time // when the marker in running was first seen
	known     bool      // running is the answer to the last query
	checkedAt time.Time
	lastError string

	nextQuery       time.Time
	queries         int // consecutive queries without the wanted answer
	nextReconfigure time.Time
	attempts        int // consecutive reconfigures without success
	reconfigures    int // since the agent started
}

// next decides what to do.
func (s state) next(now time.Time, seen observation) (state, action) {
	if seen.Marker != s.seen.Marker {
		// New files are tried immediately, whatever the result of earlier ones.
		s.attempts, s.nextReconfigure = 0, time.Time{}
	}
	if seen != s.seen {
		s.seen, s.queries, s.nextQuery = seen, 0, time.Time{}
	}
	switch {
	case !now.Before(s.nextQuery):
		return s, query
	case s.known && !s.applied() && seen.Marker != "" && !now.Before(s.nextReconfigure):
		return s, reconfigure
	default:
		return s, wait
	}
}

// applied reports whether slurmctld runs with the files.
func (s state) applied() bool { return s.known && s.running.Marker == s.seen.Marker }

// queried returns the state after a query to slurmctld.
func (s state) queried(now time.Time, running answer, err error) state {
	s.checkedAt = now
	s.known = err == nil
	if err == nil {
		if running.Marker != s.running.Marker {
			s.since = now
		}
		s.running = running
	}
	if s.applied() || s.known && s.seen.Marker == "" {
		s.queries, s.attempts, s.nextReconfigure = 0, 0, time.Time{}
		s.nextQuery, s.lastError = now.Add(idleInterval), ""
		return s
	}
	s.nextQuery = now.Add(doubled(firstQuery, s.queries, idleInterval))
	s.queries++
	switch {
	case err != nil && s.attempts > 0 && errors.Is(err, errDown):
		s.lastError = fmt.Sprintf("after reconfigure %d to %s: %v", s.attempts, s.seen.Marker, err)
	case err != nil:
		s.lastError = err.Error()
	case s.attempts > 0 && s.lastError == "":
		s.lastError = fmt.Sprintf("slurmctld still runs with %q after reconfigure %d to %s", running.Marker, s.attempts,
			s.seen.Marker)
	}
	return s
}

// reconfigured returns the state after a reconfigure. Its success says little: slurmctld acknowledges before it reads
// the files, and may crash on them. So the next action is a query.
func (s state) reconfigured(now time.Time, err error) state {
	s.nextReconfigure = now.Add(doubled(firstReconfigure, s.attempts, maxReconfigure))
	s.attempts++
	s.reconfigures++
	s.queries, s.nextQuery = 0, now
	s.lastError = ""
	if err != nil {
		s.lastError = err.Error()
	}
	return s
}

// doubled returns a delay after doubling it some times, up to a limit.
func doubled(first time.Duration, times int, limit time.Duration) time.Duration {
	for ; times > 0 && first < limit; times-- {
		first *= 2
	}
	return min(first, limit)
}

// Report is what the agent reports to the operator.
type Report struct {
	// FilesHash is the marker in the files, empty while they have none.
	FilesHash string `json:"filesHash"`
	// RunningHash is the marker that slurmctld ran with when it last answered.
	RunningHash string `json:"runningHash"`
	// RunningSince is when the agent first saw that slurmctld runs with it, on the clock of CheckedAt.
	RunningSince time.Time `json:"runningSince,omitzero"`
	SlurmVersion string    `json:"slurmVersion"`
	// Reconfigures counts the reconfigures since the agent started.
	Reconfigures int `json:"reconfigures"`
	// LastError is why slurmctld does not run with the files, empty if it does.
	LastError string    `json:"lastError,omitempty"`
	CheckedAt time.Time `json:"checkedAt"`
}

func (s state) report() Report {
	return Report{
		FilesHash:    s.seen.Marker,
		RunningHash:  s.running.Marker,
		RunningSince: s.since,
		SlurmVersion: s.running.Version,
		Reconfigures: s.reconfigures,
		LastError:    s.lastError,
		CheckedAt:    s.checkedAt,
	}
}
