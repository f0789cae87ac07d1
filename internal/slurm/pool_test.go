package slurm

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var cluster = Key{"slurm", "main"}

func settings(identity string, client Client) Settings {
	return Settings{Identity: identity, Dial: func() (Client, error) { return client, nil }}
}

// set adds a session that must not fail.
func set(t *testing.T, pool *Pool, key Key, identity string, client Client) {
	t.Helper()
	if err := pool.Set(key, settings(identity, client)); err != nil {
		t.Fatal(err)
	}
}

func TestPoolReplacesSessionOnlyWhenSettingsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(MirrorOptions{})
		defer pool.Close()
		first := newScripted("a")
		set(t, pool, cluster, "one", first)
		time.Sleep(time.Minute)
		session, _ := pool.Get(cluster)
		set(t, pool, cluster, "one", newScripted("never asked"))
		if again, _ := pool.Get(cluster); again != session || session.Mirror.Snapshot() == nil {
			t.Error("a session with the same settings was replaced")
		}
		set(t, pool, cluster, "two", newScripted("b"))
		synctest.Wait()
		asked := first.polls()
		time.Sleep(time.Minute)
		replaced, _ := pool.Get(cluster)
		if _, ok := replaced.Mirror.Snapshot().Node("b"); !ok || first.polls() != asked {
			t.Error("the old session still polls, or the new one does not")
		}
		if _, err := session.Mirror.Refresh(t.Context()); err == nil {
			t.Error("the old session still answers")
		}
		pool.Remove(cluster)
		if _, ok := pool.Get(cluster); ok || len(pool.Keys()) != 0 {
			t.Error("the session was not removed")
		}
	})
}

func TestPoolKeepsSessionWhenNewSettingsAreInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(MirrorOptions{})
		defer pool.Close()
		set(t, pool, cluster, "one", newScripted("a"))
		bad := errors.New("bad URL")
		err := pool.Set(cluster, Settings{Identity: "two", Dial: func() (Client, error) { return nil, bad }})
		if _, ok := pool.Get(cluster); !ok || !errors.Is(err, bad) {
			t.Errorf("session exists: %t, error %v", ok, err)
		}
	})
}

func TestSessionReportsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(MirrorOptions{})
		defer pool.Close()
		events := pool.Subscribe()
		defer events.Close()
		client := newScripted("a")
		set(t, pool, cluster, "one", client)
		session, _ := pool.Get(cluster)
		if status := session.Status(); status.Reachable || status.Err != nil {
			t.Errorf("status before the first attempt is %+v", status)
		}
		// expect waits for the event of a status change.
		expect := func() Status {
			t.Helper()
			for {
				select {
				case <-events.Ready():
				case <-time.After(time.Hour):
					t.Fatal("no event in an hour")
				}
				if slices.Contains(events.Take(), Event{Cluster: cluster}) {
					return session.Status()
				}
			}
		}
		if status := expect(); !status.Reachable || status.Info.API != "v0.0.45" || status.Diag.CountersSince.IsZero() {
			t.Errorf("status is %+v", status)
		}
		time.Sleep(time.Minute)
		client.set(func() { client.err = &Error{Kind: ControllerDown, Op: "get statistics"} })
		down := expect()
		if down.Reachable || !errors.Is(down.Err, ControllerDown) || time.Since(down.Since) > time.Second ||
			!down.NextAttempt.After(time.Now()) {
			t.Errorf("status is %+v", down)
		}
		time.Sleep(10 * time.Minute)
		if status := session.Status(); !status.Since.Equal(down.Since) || len(events.Take()) != 0 {
			t.Errorf("a continuing outage is published again: %+v", status)
		}
		client.set(func() { client.err = nil })
		if status := expect(); !status.Reachable || status.Err != nil {
			t.Errorf("status is %+v", status)
		}
	})
}

func TestStuckClusterDoesNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(MirrorOptions{})
		defer pool.Close()
		stuck, fine := newScripted("a"), newScripted("b")
		stuck.err = &Error{Kind: Timeout, Op: "x"}
		set(t, pool, Key{"slurm", "stuck"}, "one", stuck)
		set(t, pool, cluster, "one", fine)
		time.Sleep(time.Second)
		session, _ := pool.Get(cluster)
		if session.Mirror.Snapshot() == nil {
			t.Error("the other cluster has no snapshot")
		}
		if keys := pool.Keys(); len(keys) != 2 || keys[0] != cluster || cluster.String() != "slurm/main" {
			t.Errorf("keys are %v", keys)
		}
	})
}

// TestRemovedSessionIsReported checks that those who follow a pool learn that a session is gone: they show that Slurm
// answers until then.
func TestRemovedSessionIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(MirrorOptions{})
		defer pool.Close()
		set(t, pool, cluster, "one", newScripted("a"))
		synctest.Wait()
		events := pool.Subscribe()
		defer events.Close()
		pool.Remove(cluster)
		<-events.Ready()
		if got := events.Take(); len(got) != 1 || got[0] != (Event{Cluster: cluster}) {
			t.Errorf("events are %v", got)
		}
	})
}

// TestRestartOfSlurmctldIsReported has a slurmctld whose nodes look the same after its restart.
func TestRestartOfSlurmctldIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(MirrorOptions{})
		defer pool.Close()
		client := newScripted("a")
		set(t, pool, cluster, "one", client)
		time.Sleep(time.Hour)
		synctest.Wait()
		events := pool.Subscribe()
		defer events.Close()
		client.mu.Lock()
		client.since = time.Now()
		client.mu.Unlock()
		<-events.Ready()
		if got := events.Take(); len(got) != 1 || got[0] != (Event{Cluster: cluster}) {
			t.Errorf("events are %v", got)
		}
	})
}

func TestBackoff(t *testing.T) {
	for failures := 1; failures < 100; failures++ {
		outage, refusal := DefaultBackoff.after(failures, Unreachable), DefaultBackoff.after(failures, Unauthorized)
		if outage < DefaultBackoff.First/2 || outage > DefaultBackoff.MaxOutage || refusal < DefaultBackoff.First/2 ||
			refusal > DefaultBackoff.MaxRefusal {
			t.Errorf("after %d failures: %s, %s", failures, outage, refusal)
		}
		if failures > 10 && (outage < DefaultBackoff.MaxOutage/2 || refusal < DefaultBackoff.MaxRefusal/2) {
			t.Errorf("after %d failures only %s, %s", failures, outage, refusal)
		}
	}
}

// wrapped implements only Client, like a client that logs changes.
type wrapped struct{ Client }

func TestMirrorUsesUnwrappedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(MirrorOptions{})
		defer pool.Close()
		asked := settings("one", newScripted("a"))
		asked.Wrap = func(client Client) Client { return wrapped{client} }
		if err := pool.Set(cluster, asked); err != nil {
			t.Fatal(err)
		}
		session, _ := pool.Get(cluster)
		if _, ok := session.Client.(wrapped); !ok {
			t.Errorf("the session's client is a %T", session.Client)
		}
		if _, hidden := session.Mirror.client.(wrapped); hidden {
			t.Error("the mirror cannot use further interfaces of the client, such as JobCounter")
		}
	})
}

func TestPollIntervalGrowsWithPollDuration(t *testing.T) {
	mirror := NewMirror(newScripted("a"), MirrorOptions{})
	for took, want := range map[time.Duration]time.Duration{
		10 * time.Millisecond: 80 * time.Millisecond,
		2 * time.Second:       10 * time.Second,
		9 * time.Second:       36 * time.Second,
	} {
		if mirror.took = took; mirror.pace() != want {
			t.Errorf("after a poll of %s the next one follows after %s, want %s", took, mirror.pace(), want)
		}
	}
}
