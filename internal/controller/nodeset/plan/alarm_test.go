package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
)

// missingAlarm returns how the plan changes although nothing happens, and no plan has asked to be made again by then;
// empty if it does not. Everything that a plan derives from time, or from how recent a snapshot of Slurm is, needs such
// an alarm: a moment to wake, or a read of Slurm. No event comes instead of it.
func missingAlarm(s *plan.Snapshot) string {
	if s.Slurm != nil && s.Slurm.ControllerSince.IsZero() {
		return "" // an event comes when slurmctld says since when it has been running
	}
	for range maxAlarms {
		var next plan.Plan
		if s, next = settled(s); len(next.Actions) > 0 {
			return "" // they change the world
		}
		alarm := next.Wake
		if next.NeedsRefresh {
			alarm = s.Now.Add(time.Second)
		}
		for _, later := range laterBy {
			if now := s.Now.Add(later); alarm.IsZero() || now.Before(alarm) {
				if diff := difference(&next, s, now, alarm); diff != "" {
					return fmt.Sprintf("%s after %s, before the alarm at %s:\n%s", later, s.Now.Sub(epoch), alarm.Sub(epoch), diff)
				}
			}
		}
		if alarm.IsZero() {
			return ""
		}
		s = moveTo(s, alarm)
	}
	if s.Now.Sub(epoch) < time.Minute {
		return fmt.Sprintf("%d alarms within %s lead to nothing", maxAlarms, s.Now.Sub(epoch))
	}
	return ""
}

// maxAlarms is how many alarms are followed. Some never end, such as those of a schedule.
const maxAlarms = 30

// alarmChecks is how many plans the model makes for each one that is checked for missing alarms, and elasticAlarmChecks
// how many that of elastic NodeSets makes.
const alarmChecks, elasticAlarmChecks = 32, 4

// laterBy are the moments at which a plan is made again.
var laterBy = []time.Duration{
	time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond, 5 * time.Second, maxSnapshotAge - time.Second,
	maxSnapshotAge + time.Second, time.Minute, 2*time.Minute + time.Second, 10 * time.Minute, 3 * time.Hour,
}

// difference compares a plan with those of the same world at a later moment: with the same snapshot of Slurm, which is
// then old, and with one that is as new as that moment. The operator may leave a newer one unread for a short time, at
// whose end an alarm is set.
func difference(before *plan.Plan, s *plan.Snapshot, now, alarm time.Time) string {
	want := describe(before)
	for name, later := range map[string]*plan.Snapshot{"an older": moveTo(s, now), "a newer": polled(moveTo(s, now))} {
		_, next := settled(later)
		if next.NeedsRefresh || name == "a newer" && !alarm.IsZero() && alarm.Sub(s.Now) <= maxSnapshotAge {
			continue
		}
		if got := describe(&next); got != want {
			return fmt.Sprintf("with %s snapshot of Slurm, the plan is\n%snot\n%s", name, got, want)
		}
	}
	return ""
}

// settled returns the plan after the reads of Slurm that it asks for, and the snapshot that they lead to.
func settled(s *plan.Snapshot) (*plan.Snapshot, plan.Plan) {
	next := plan.Next(s)
	for range 3 {
		if !next.NeedsRefresh || !s.Answers || s.Slurm == nil {
			break
		}
		s = polled(s)
		s.JustRead, s.Reread = true, nil
		next = plan.Next(s)
	}
	return s, next
}

// moveTo returns a snapshot of the same world at a later moment.
func moveTo(s *plan.Snapshot, now time.Time) *plan.Snapshot {
	later := *s
	later.Now, later.JustRead = now, false
	return &later
}

// polled returns a snapshot with a list of Slurm nodes that is as the last one, and was read a moment later.
func polled(s *plan.Snapshot) *plan.Snapshot {
	later := *s
	if s.Slurm == nil {
		return &later
	}
	later.Now = s.Now.Add(time.Microsecond)
	later.Slurm = new(*s.Slurm)
	later.Slurm.NodesAsOf, later.Slurm.JobsAsOf = s.Now, s.Now
	later.DrainedSince = map[string]time.Time{}
	for i := range s.Pods {
		name := s.Pods[i].SlurmNode
		if node, known := s.Slurm.Node(name); !known || node.Closed() || node.PoweredOff() {
			since, recorded := s.DrainedSince[name]
			if !recorded {
				since = later.Slurm.NodesAsOf
			}
			later.DrainedSince[name] = since
		}
	}
	return &later
}

// describe returns everything that a plan says.
func describe(next *plan.Plan) string {
	return fmt.Sprintf("%sdesired %d, available %d, updated %d, outdated %d, protections %d, unregistered %q\nelastic %+v\n", next,
		next.Desired, next.Available, next.Updated, next.Outdated, next.Protections, next.Unregistered, next.Elastic)
}

// checkAlarms checks a plan of a table.
func checkAlarms(t *testing.T, s *plan.Snapshot) {
	t.Helper()
	if missing := missingAlarm(s); missing != "" {
		t.Errorf("the plan waits without an alarm: it changes %s", missing)
	}
}

// TestProtectionAsksForWhatEndsIt covers the pods whose protection ends although nothing happens.
func TestProtectionAsksForWhatEndsIt(t *testing.T) {
	drained0 := many(cordoned, drained(0, byUs("Kubernetes node m1 is cordoned")))
	readAgo := func(ago time.Duration) edit {
		return func(s *plan.Snapshot) {
			s.JustRead, s.Slurm.NodesAsOf, s.Slurm.JobsAsOf = false, epoch.Add(-ago), epoch.Add(-ago)
		}
	}
	created := func(ago time.Duration) edit {
		return pod(0, func(p *plan.Pod) { p.Created = epoch.Add(-ago) })
	}
	for name, test := range map[string]struct {
		edit  edit
		wakes time.Duration // negative: it asks for a read
	}{
		"a record that was read in the second of the creation": {
			many(drained0, created(500*time.Millisecond), readAgo(100*time.Millisecond)), 500 * time.Millisecond,
		},
		"a record that was read before the creation": {many(drained0, created(time.Minute), readAgo(2*time.Minute)), -1},
		"a creation in the future of the operator's clock": {
			many(drained0, created(-5*time.Second), readAgo(time.Second)), 6 * time.Second,
		},
		"no record, in an old snapshot": {many(cordoned, withoutRecord(0), unready(0), readAgo(time.Hour)), -1},
		"no record, without a cordon":   {many(withoutRecord(0), unready(0), readAgo(time.Hour)), -1},
		"no record, of a slurmd that started a minute ago": {
			many(cordoned, withoutRecord(0), unready(0), pod(0, func(p *plan.Pod) { p.Started = epoch.Add(-time.Minute) })),
			time.Minute,
		},
		"no record, of a slurmctld that just started": {
			many(cordoned, withoutRecord(0), unready(0), func(s *plan.Snapshot) { s.Slurm.ControllerSince = time.Time{} }),
			2 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(1, test.edit)
			next := plan.Next(s)
			if got := next.Wake.Sub(epoch); next.NeedsRefresh != (test.wakes < 0) || test.wakes > 0 && got != test.wakes {
				t.Errorf("it asks for a read: %v, and wakes after %s, want %s", next.NeedsRefresh, got, test.wakes)
			}
			checkAlarms(t, s)
		})
	}
}

// TestOldAbsenceAllowsEviction shows that the age of a snapshot alone does not protect a pod again.
func TestOldAbsenceAllowsEviction(t *testing.T) {
	s := scene(1, withoutRecord(0), unready(0), func(s *plan.Snapshot) {
		s.JustRead, s.DrainedSince["gpu-0"] = false, epoch.Add(-40*time.Minute)
		s.Slurm.NodesAsOf, s.Slurm.JobsAsOf = epoch.Add(-30*time.Minute), epoch.Add(-30*time.Minute)
	})
	if next := plan.Next(s); next.Protections[0] != plan.Evictable || next.NeedsRefresh {
		t.Errorf("protection %d, and a read: %v", next.Protections[0], next.NeedsRefresh)
	}
}

// TestUnprovenAbsenceIsNotReadAgainAtOnce has a pod of which no read can prove anything: one of too many jobs to list
// is being cleaned up on an unknown Slurm node.
func TestUnprovenAbsenceIsNotReadAgainAtOnce(t *testing.T) {
	for _, justRead := range []bool{true, false} {
		s := scene(1, withoutRecord(0), unready(0), func(s *plan.Snapshot) {
			s.JustRead, s.Slurm.Partial, s.Slurm.Unplaced, s.Slurm.Running = justRead, true, 1, 12000
		})
		next := plan.Next(s)
		if next.Protections[0] != plan.Protected || next.NeedsRefresh || !next.Wake.Equal(epoch.Add(maxSnapshotAge)) {
			t.Errorf("protection %d, a read: %v, and it wakes at %s", next.Protections[0], next.NeedsRefresh, next.Wake)
		}
	}
}

// TestUnprovenJobsAreReadOnRequest has too many jobs to list, and the last poll, which nothing requested, proved
// nothing about them. The next poll need not either.
func TestUnprovenJobsAreReadOnRequest(t *testing.T) {
	for name, test := range map[string]struct {
		justRead, unprotected bool
		reads                 bool
		wakes                 time.Duration
	}{
		"after a poll":                          {reads: true},
		"after a read that proved nothing":      {justRead: true, wakes: time.Minute},
		"not for a pod that may be evicted now": {unprotected: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(1, withoutRecord(0), unready(0), func(s *plan.Snapshot) {
				s.JustRead, s.Slurm.Partial, s.Slurm.JobsAsOf = test.justRead, true, time.Time{}
				s.Pods[0].Unprotected = test.unprotected
			})
			next := plan.Next(s)
			if next.Protections[0] != plan.UnknownProtection || next.NeedsRefresh != test.reads ||
				test.wakes > 0 != next.Wake.Equal(epoch.Add(test.wakes)) {
				t.Errorf("protection %d, a read: %v, and it wakes at %s", next.Protections[0], next.NeedsRefresh, next.Wake)
			}
		})
	}
}

// TestUnregisteredSlurmNodesAreReportedInTime checks the moment from which on a ready pod counts as not registered.
func TestUnregisteredSlurmNodesAreReportedInTime(t *testing.T) {
	s := scene(1, withoutRecord(0), pod(0, func(p *plan.Pod) {
		p.Created, p.Started, p.ReadySince = epoch.Add(-time.Minute), epoch.Add(-time.Minute), epoch.Add(-50*time.Second)
	}))
	if next := plan.Next(s); !next.Wake.Equal(epoch.Add(time.Minute)) || len(next.Unregistered) > 0 {
		t.Errorf("before: it wakes at %s, unregistered %q", next.Wake, next.Unregistered)
	}
	if next := plan.Next(moveTo(s, epoch.Add(time.Minute))); strings.Join(next.Unregistered, "") != "gpu-0" {
		t.Errorf("after: unregistered %q", next.Unregistered)
	}
}
