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
	deadly       bool  // the files kill slurmctld when it reads them
	refusal      error // of a reconfigure
	asks         int
	reconfigures []time.Duration // when, since the start
	start        time.Time
}

func (f *fakeSlurm) Look() observation {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.seen
}

func (f *fakeSlurm) Ask(context.Context) (answer, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.asks++
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
	case f.deadly:
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

// withAgent runs an agent beside a slurmctld that runs with its files.
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

// pass lets time pass.
func pass(duration time.Duration) {
	time.Sleep(duration)
	synctest.Wait()
}

func TestAgentAsksRarelyAtRest(t *testing.T) {
	withAgent(t, func(slurm *fakeSlurm, _ *agent) {
		pass(10 * time.Minute)
		if slurm.asks > 21 || len(slurm.reconfigures) > 0 {
			t.Errorf("%d questions and reconfigures at %v in 10 minutes", slurm.asks, slurm.reconfigures)
		}
	})
}

func TestAgentAppliesChangedFiles(t *testing.T) {
	withAgent(t, func(slurm *fakeSlurm, agent *agent) {
		pass(10500 * time.Millisecond)
		slurm.change(func() { slurm.seen = newConf })
		pass(time.Second)
		want := Report{
			FilesHash: "bbb", RunningHash: "bbb", SlurmVersion: "26.05.5",
			Reconfigures: 1, CheckedAt: slurm.start.Add(11 * time.Second),
		}
		if diff := cmp.Diff(want, agent.Report()); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
	})
}

func TestAgentTriesEverMoreRarely(t *testing.T) {
	withAgent(t, func(slurm *fakeSlurm, agent *agent) {
		pass(time.Second / 2)
		slurm.change(func() { slurm.seen, slurm.refusal = newConf, errors.New("refused") })
		pass(3 * time.Minute)
		var got []float64
		for _, at := range slurm.reconfigures {
			got = append(got, at.Seconds())
		}
		if diff := cmp.Diff([]float64{1, 3, 7, 15, 31, 63, 123}, got); diff != "" {
			t.Errorf("seconds of reconfigures (-want +got):\n%s", diff)
		}
		if slurm.asks > 40 {
			t.Errorf("%d questions in 3 minutes", slurm.asks)
		}
		if got := agent.Report().LastError; got != "refused" {
			t.Errorf("last error %q", got)
		}

		// Other files get their chance at once.
		slurm.change(func() { slurm.seen, slurm.refusal = observation{Files: "..3", Marker: "ccc"}, nil })
		pass(time.Second)
		if got := agent.Report(); got.RunningHash != "ccc" || got.LastError != "" {
			t.Errorf("report %+v", got)
		}
	})
}

func TestAgentWaitsForASlurmctldThatDiedOfAReconfigure(t *testing.T) {
	withAgent(t, func(slurm *fakeSlurm, agent *agent) {
		slurm.change(func() { slurm.seen, slurm.deadly = newConf, true })
		pass(10 * time.Minute)
		if len(slurm.reconfigures) != 1 || slurm.asks > 40 {
			t.Errorf("%d questions, reconfigures at %v", slurm.asks, slurm.reconfigures)
		}
		if got, want := agent.Report().LastError, "after reconfigure 1 to bbb: slurmctld does not answer"; got != want {
			t.Errorf("last error %q, want %q", got, want)
		}

		// It starts with files that it can read.
		slurm.change(func() {
			slurm.seen, slurm.running.Marker = observation{Files: "..3", Slurmctld: "pid 2", Marker: "ccc"}, "ccc"
			slurm.down, slurm.deadly = false, false
		})
		pass(time.Second)
		if got := agent.Report(); got.RunningHash != "ccc" || got.LastError != "" || got.Reconfigures != 1 {
			t.Errorf("report %+v", got)
		}
	})
}
