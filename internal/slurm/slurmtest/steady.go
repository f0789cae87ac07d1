package slurmtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Steady returns everything that clients can see or change, as a text to compare, and how long that stays so without a
// request; negative if forever. With it, a test can tell that nothing happens any more.
func (s *Server) Steady() (state string, until time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	now := s.clock()
	until = -1
	change := func(at time.Time) {
		if in := max(at.Sub(now), 0); until < 0 || in < until {
			until = in
		}
	}
	var all strings.Builder
	fmt.Fprintln(&all, s.down, s.booted, s.epilog, s.requeued, string(s.key))
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		node := s.nodes[name]
		fmt.Fprintf(&all, "%+v\n", *node)
		switch node.power {
		case poweringUp:
			change(node.powerSince.Add(ResumeTimeout))
		case poweringDown:
			change(node.powerSince.Add(SuspendTimeout))
		case powerPending:
			change(now)
		case powerUp, powerOff, powerLeaving:
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		job := s.jobs[id]
		fmt.Fprintf(&all, "%+v\n", *job)
		switch {
		case !job.completing.IsZero():
			change(job.completing)
		case job.base == "RUNNING" && !job.configuring():
			change(job.end)
		case job.base == "PENDING" && job.begin.After(now):
			change(job.begin)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.reservations)) {
		fmt.Fprintf(&all, "%+v\n", *s.reservations[name])
	}
	for _, fault := range s.faults {
		fmt.Fprintln(&all, fault.Path, fault.Times)
	}
	return all.String(), until
}
