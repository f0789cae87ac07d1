package agent

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeSlurm is a slurmctld and the files that it reads.
type fakeSlurm struct {
	mutex        sync.Mutex
	seen         observation
	running      answer
	down         bool
	crashes      bool  // slurmctld crashes when it reads the files
	refusal      error // error of a reconfigure
	queries      int
	reconfigures []time.Duration // times since the start
	start        time.Time
}

func (f *fakeSlurm) Observe() observation {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.seen
}

func (f *fakeSlurm) Query(context.Context) (answer, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.queries++
	if f.down {
		return answer{}, errDown
	}
	return f.running, nil
}

func (f *fakeSlurm) Reconfigure(context.Context) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.reconfigures = append(f.reconfigures, time.Since(f.start))
	switch {
	case f.refusal != nil:
		return f.refusal
	case f.crashes:
		f.down = true
	default:
		f.running.Marker = f.seen.Marker
	}
	return nil
}

// change changes the fake while the agent runs.
func (f *fakeSlurm) change(change func()) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change()
}

// withAgent runs an agent with a slurmctld that already uses its files.
func withAgent(t *testing.T, test func(*fakeSlurm, *agent)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		slurm := &fakeSlurm{seen: oldConf, running: answer{Marker: "aaa", Version: "26.05.5"}, start: time.Now()}
		agent := &agent{files: slurm, slurm: slurm}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { agent.run(ctx) })
		test(slurm, agent)
		cancel()
		running.Wait()
	})
}

// advance advances the clock.
func advance(duration time.Duration) {
	time.Sleep(duration)
	synctest.Wait()
}

func TestIdleAgentPollsInfrequently(t *testing.T) {
	withAgent(t, func(slurm *fakeSlurm, _ *agent) {
		advance(10 * time.Minute)
		if slurm.queries > 21 || len(slurm.reconfigures) > 0 {
			t.Errorf("%d queries and reconfigures at %v in 10 minutes", slurm.queries, slurm.reconfigures)
		}
	})
}

func TestAgentAppliesChangedFiles(t *testing.T) {
	withAgent(t, func(slurm *fakeSlurm, agent *agent) {
		advance(10500 * time.Millisecond)
		slurm.change(func() { slurm.seen = newConf })
		advance(time.Second)
		applied := slurm.start.Add(11 * time.Second)
		want := Report{
			FilesHash: "bbb", RunningHash: "bbb", RunningSince: applied, SlurmVersion: "26.05.5",
			Reconfigures: 1, CheckedAt: applied,
		}
		if diff := cmp.Diff(want, agent.Report()); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
	})
}

func TestAgentBacksOffAfterFailedReconfigure(t *testing.T) {
	withAgent(t, func(slurm *fakeSlurm, agent *agent) {
		advance(time.Second / 2)
		slurm.change(func() { slurm.seen, slurm.refusal = newConf, errors.New("refused") })
		advance(3 * time.Minute)
		var got []float64
		for _, at := range slurm.reconfigures {
			got = append(got, at.Seconds())
		}
		if diff := cmp.Diff([]float64{1, 3, 7, 15, 31, 63, 123}, got); diff != "" {
			t.Errorf("seconds of reconfigures (-want +got):\n%s", diff)
		}
		if slurm.queries > 40 {
			t.Errorf("%d queries in 3 minutes", slurm.queries)
		}
		if got := agent.Report().LastError; got != "refused" {
			t.Errorf("last error %q", got)
		}

		// Other files are tried immediately.
		slurm.change(func() { slurm.seen, slurm.refusal = observation{Files: "..3", Marker: "ccc"}, nil })
		advance(time.Second)
		if got := agent.Report(); got.RunningHash != "ccc" || got.LastError != "" {
			t.Errorf("report %+v", got)
		}
	})
}

func TestAgentWaitsForSlurmctldThatCrashedOnReconfigure(t *testing.T) {
	withAgent(t, func(slurm *fakeSlurm, agent *agent) {
		slurm.change(func() { slurm.seen, slurm.crashes = newConf, true })
		advance(10 * time.Minute)
		if len(slurm.reconfigures) != 1 || slurm.queries > 40 {
			t.Errorf("%d queries, reconfigures at %v", slurm.queries, slurm.reconfigures)
		}
		if got, want := agent.Report().LastError, "after reconfigure 1 to bbb: slurmctld does not answer"; got != want {
			t.Errorf("last error %q, want %q", got, want)
		}

		// It restarts with valid files.
		slurm.change(func() {
			slurm.seen, slurm.running.Marker = observation{Files: "..3", Slurmctld: "pid 2", Marker: "ccc"}, "ccc"
			slurm.down, slurm.crashes = false, false
		})
		advance(time.Second)
		if got := agent.Report(); got.RunningHash != "ccc" || got.LastError != "" || got.Reconfigures != 1 {
			t.Errorf("report %+v", got)
		}
	})
}

// Somebody may edit the files, and the operator reverts that. slurmctld does not read an edit that keeps the marker,
// and one that changes it is replaced again.
func TestRevertedEditEndsWithTheMarkerInForce(t *testing.T) {
	for name, test := range map[string]struct {
		marker       string
		reconfigures int
	}{
		"the marker is kept": {"aaa", 0}, "the marker is removed": {"", 0}, "the marker is another": {"mine", 2},
	} {
		t.Run(name, func(t *testing.T) {
			withAgent(t, func(slurm *fakeSlurm, agent *agent) {
				advance(10500 * time.Millisecond)
				slurm.change(func() { slurm.seen = observation{Files: "..2", Slurmctld: "pid 1", Marker: test.marker} })
				advance(time.Minute)
				slurm.change(func() { slurm.seen = observation{Files: "..3", Slurmctld: "pid 1", Marker: "aaa"} })
				advance(time.Minute)
				if got := agent.Report(); got.FilesHash != "aaa" || got.RunningHash != "aaa" || got.LastError != "" {
					t.Errorf("report %+v", got)
				}
				if got := len(slurm.reconfigures); got != test.reconfigures {
					t.Errorf("%d reconfigures", got)
				}
			})
		})
	}
}
