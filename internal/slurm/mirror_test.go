package slurm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// take waits for changes and takes them.
func take(t *testing.T, changes *Subscription[string]) []string {
	t.Helper()
	select {
	case <-changes.Ready():
	case <-time.After(time.Hour):
		t.Fatal("no change in an hour")
	}
	names := changes.Take()
	slices.Sort(names)
	return names
}

func TestMirrorNotifiesOnlyChangedNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a", "b", "c")
		mirror := runMirror(t, cluster)
		changes := mirror.Subscribe()
		if diff := cmp.Diff([]string{"a", "b", "c"}, take(t, changes)); diff != "" {
			t.Error(diff)
		}
		before := mirror.Snapshot()
		time.Sleep(time.Minute)
		cluster.change("b", func(n *Node) { n.Flags = FlagDrain })
		start := time.Now()
		if diff := cmp.Diff([]string{"b"}, take(t, changes)); diff != "" {
			t.Error(diff)
		}
		if late := time.Since(start); late > 10*time.Second+batchWindow {
			t.Errorf("the change was published after %s", late)
		}
		after := mirror.Snapshot()
		for i, name := range []string{"a", "b", "c"} {
			if same := before.Nodes[i] == after.Nodes[i]; same != (name != "b") {
				t.Errorf("%s is the same value: %t", name, same)
			}
		}
		if before.Nodes[1].Flags != 0 || after.Generation != before.Generation+1 {
			t.Error("the old snapshot has changed, or the new one has no new generation")
		}
	})
}

func TestMirrorNotifiesAddedAndRemovedNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("b", "d")
		mirror := runMirror(t, cluster)
		changes := mirror.Subscribe()
		take(t, changes)
		cluster.change("a", func(*Node) {})
		cluster.change("e", func(*Node) {})
		cluster.set(func() { delete(cluster.nodes, "b") })
		if diff := cmp.Diff([]string{"a", "b", "e"}, take(t, changes)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"a", "d", "e"}, names(mirror.Snapshot().Nodes)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestMirrorIsCheapWhileOnlyHeartbeatsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted()
		for i := range 5000 {
			cluster.change(fmt.Sprintf("n%d", i), func(*Node) {})
		}
		cluster.set(func() { cluster.size = 5000 * 1589 })
		mirror := runMirror(t, cluster)
		time.Sleep(time.Hour) // until steady state
		cluster.set(func() { cluster.sent = 0 })
		for range 24 * 3600 / 20 {
			time.Sleep(20 * time.Second)
			cluster.set(func() { cluster.nodesAt = time.Now().Unix() })
		}
		const fullEvery30s = 24 * 120 * 5000 * 1589
		sent := int64(0)
		cluster.set(func() { sent = cluster.sent })
		if share := float64(sent) / fullEvery30s; share > 0.02 {
			t.Errorf("it transferred %.1f %% of a list every 30 s", 100*share)
		}
		// A change by another client is still seen at the next poll.
		changes := mirror.Subscribe()
		take(t, changes)
		start := time.Now()
		cluster.change("n7", func(n *Node) { n.Reason = "bad memory" })
		if diff := cmp.Diff([]string{"n7"}, take(t, changes)); diff != "" ||
			time.Since(start) > 10*time.Second+batchWindow {
			t.Errorf("after %s: %s", time.Since(start), diff)
		}
		// Changes that slurmctld makes by itself show up eventually.
		time.Sleep(time.Hour)
		start = time.Now()
		cluster.set(func() {
			cluster.nodes["n8"] = Node{Name: "n8", State: StateDown}
			cluster.nodesAt = time.Now().Unix()
		})
		if diff := cmp.Diff([]string{"n8"}, take(t, changes)); diff != "" || time.Since(start) > 31*time.Minute {
			t.Errorf("after %s: %s", time.Since(start), diff)
		}
	})
}

func TestMirrorLimitsLoadOnSlurmctld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		cluster.slow = time.Second
		mirror := runMirror(t, cluster)
		changes := mirror.Subscribe()
		take(t, changes)
		before, lists := cluster.polls(), cluster.count("nodes")
		for i := range 600 {
			cluster.change("a", func(n *Node) { n.Comment = strconv.Itoa(i) })
			mirror.Nudge()
			time.Sleep(100 * time.Millisecond)
		}
		if lists := cluster.count("nodes") - lists; lists < 7 || lists > 8 {
			t.Errorf("%d lists in a minute of a cluster that needs a second for each, want one in 8 seconds", lists)
		}
		if polls := cluster.polls() - before; polls > 70 {
			t.Errorf("%d polls in a minute", polls)
		}
		begin := time.Now()
		if _, err := mirror.Refresh(t.Context()); err != nil || time.Since(begin) > 2500*time.Millisecond {
			t.Errorf("a refresh took %s: %v", time.Since(begin), err)
		}
	})
}

func TestMirrorPollsLessOftenWhileManyNodesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		mirror := runMirror(t, cluster)
		changes := mirror.Subscribe()
		take(t, changes)
		time.Sleep(time.Minute)
		before := map[string]int{}
		cluster.set(func() { maps.Copy(before, cluster.requests) })
		for i := range 600 { // a minute in which twenty slurmds register each second
			cluster.change(fmt.Sprintf("n%d", 2*i), func(*Node) {})
			cluster.change(fmt.Sprintf("n%d", 2*i+1), func(*Node) {})
			mirror.Expect()
			time.Sleep(100 * time.Millisecond)
		}
		cluster.set(func() {
			polls, lists := cluster.requests["diag"]-before["diag"], cluster.requests["nodes"]-before["nodes"]
			if polls < 14 || polls > 20 || lists != polls {
				t.Errorf("%d polls and %d lists of nodes in a minute, want one in four seconds", polls, lists)
			}
			if states := cluster.requests["states"] - before["states"]; states > 0 {
				t.Errorf("the jobs were counted %d times, and no job can have been added", states)
			}
			if jobs := cluster.requests["jobs"] - before["jobs"]; jobs > polls/2+1 {
				t.Errorf("the jobs were listed %d times in %d polls", jobs, polls)
			}
		})
		// The last ones show at the usual interval, as do single changes.
		time.Sleep(5 * time.Second)
		take(t, changes)
		start := time.Now()
		cluster.change("n7", func(n *Node) { n.Reason = "bad memory" })
		mirror.Expect()
		if diff := cmp.Diff([]string{"n7"}, take(t, changes)); diff != "" || time.Since(start) > 1100*time.Millisecond {
			t.Errorf("after %s: %s", time.Since(start), diff)
		}
	})
}

func TestMirrorReadsJobsWhenTheirCountersChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		mirror := runMirror(t, cluster)
		changes := mirror.Subscribe()
		take(t, changes)
		for i := range 5 {
			time.Sleep(time.Second)
			cluster.set(func() {
				cluster.jobs = append(cluster.jobs, Job{ID: int64(i + 1), States: []string{"RUNNING"}, Nodes: "a"})
				cluster.jobsAt = time.Now().Unix()
				cluster.rpcs["REQUEST_SUBMIT_BATCH_JOB"]++
			})
			start := time.Now()
			mirror.Expect()
			if diff := cmp.Diff([]string{"a"}, take(t, changes)); diff != "" || time.Since(start) > 1100*time.Millisecond {
				t.Errorf("after %s: %s", time.Since(start), diff)
			}
		}
	})
}

func TestMirrorTracksSnapshotAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		mirror := runMirror(t, cluster)
		take(t, mirror.Subscribe())
		time.Sleep(time.Minute)
		moment := time.Now()
		if mirror.Snapshot().TakenAfter(moment) {
			t.Error("an older snapshot counts as taken after the moment")
		}
		snapshot, err := mirror.Refresh(t.Context())
		if err != nil || !snapshot.TakenAfter(moment) {
			t.Errorf("refreshed snapshot is as of %s, %s: %v", snapshot.NodesAsOf, snapshot.JobsAsOf, err)
		}
		// A cluster that does not answer leaves the times unchanged.
		cluster.set(func() { cluster.err = &Error{Kind: ControllerDown, Op: "x"} })
		if _, err := mirror.Refresh(t.Context()); !errors.Is(err, ControllerDown) {
			t.Errorf("error is %v", err)
		}
		moment = time.Now()
		time.Sleep(time.Hour)
		if mirror.Snapshot().TakenAfter(moment) || mirror.Snapshot().Vacancy("a", moment) != Uncertain {
			t.Error("the snapshot's time advanced without an answer")
		}
	})
}

func TestMirrorFailsFastAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		cluster.err = &Error{Kind: Unreachable, Op: "x"}
		mirror := runMirror(t, cluster)
		time.Sleep(time.Hour)
		asked := cluster.polls()
		if asked > 3600/15+10 {
			t.Errorf("%d polls in an hour", asked)
		}
		for range 100 {
			if _, err := mirror.Refresh(t.Context()); !errors.Is(err, Unreachable) {
				t.Fatal(err)
			}
			mirror.Nudge()
		}
		if more := cluster.polls() - asked; more > 1 {
			t.Errorf("refreshes caused %d more polls", more)
		}
		cluster.set(func() { cluster.err = nil })
		start := time.Now()
		take(t, mirror.Subscribe())
		if late := time.Since(start); late > time.Minute {
			t.Errorf("it recovered after %s", late)
		}
	})
}

func TestMirrorResetsCursorsWhenSlurmctldRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		mirror := runMirror(t, cluster)
		changes := mirror.Subscribe()
		take(t, changes)
		time.Sleep(time.Hour)
		// The new slurmctld's clock is an hour behind, so its last change appears to be older than the last list.
		cluster.set(func() {
			cluster.since = time.Now()
			cluster.nodes["a"] = Node{Name: "a", State: StateDown}
			cluster.nodesAt -= 3600
		})
		if diff := cmp.Diff([]string{"a"}, take(t, changes)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestMirrorResetsCursorsWhenClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		mirror := runMirror(t, cluster)
		changes := mirror.Subscribe()
		take(t, changes)
		time.Sleep(time.Hour)
		cluster.set(func() {
			cluster.skew = -time.Minute
			cluster.nodes["a"] = Node{Name: "a", State: StateDown}
			cluster.nodesAt = time.Now().Add(cluster.skew).Unix()
		})
		start := time.Now()
		if diff := cmp.Diff([]string{"a"}, take(t, changes)); diff != "" || time.Since(start) > 11*time.Second {
			t.Errorf("after %s: %s", time.Since(start), diff)
		}
	})
}

func TestMirrorKeepsJobUpdatesWhenNodeRequestsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		mirror := runMirror(t, cluster)
		changes := mirror.Subscribe()
		take(t, changes)
		time.Sleep(time.Minute)
		cluster.set(func() {
			cluster.jobs = []Job{{ID: 7, States: []string{"RUNNING"}, Nodes: "a", End: time.Now().Add(time.Hour)}}
			cluster.jobsAt = time.Now().Unix()
			cluster.nodesErr = &Error{Kind: Failed, Op: "x"}
		})
		time.Sleep(time.Minute)
		cluster.set(func() { cluster.nodesErr = nil })
		take(t, changes)
		if load := mirror.Snapshot().Loads["a"]; load.Running != 1 || load.Job != 7 {
			t.Errorf("load is %+v", load)
		}
	})
}

func TestSlowSubscriberDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a", "b")
		mirror := runMirror(t, cluster)
		slow, quick := mirror.Subscribe(), mirror.Subscribe()
		take(t, quick)
		for i := range 100 {
			cluster.change([]string{"a", "b"}[i%2], func(n *Node) { n.Comment = strconv.Itoa(i) })
			mirror.Nudge()
			take(t, quick)
		}
		if diff := cmp.Diff([]string{"a", "b"}, take(t, slow)); diff != "" {
			t.Error(diff)
		}
		slow.Close()
		quick.Close()
		mirror.subscriptions.publish(func() {}, "a")
		if len(slow.Take()) != 0 {
			t.Error("a closed subscription receives changes")
		}
	})
}

func TestVacancy(t *testing.T) {
	now := time.Now()
	drained := Node{Name: "n", State: StateIdle, Flags: FlagDrain}
	job := func(states ...string) []Job { return []Job{{ID: 1, States: states, Nodes: "m[0-1],n"}} }
	for name, test := range map[string]struct {
		nodes []Node
		jobs  []Job
		asOf  time.Time
		want  Vacancy
	}{
		"drained":                {[]Node{drained}, nil, now.Add(1), Drained},
		"drained, job ended":     {[]Node{drained}, job("COMPLETED"), now.Add(1), Drained},
		"drained, job runs":      {[]Node{drained}, job("RUNNING"), now.Add(1), Occupied},
		"drained, job suspended": {[]Node{drained}, job("SUSPENDED"), now.Add(1), Occupied},
		"drained, job cleaned up": {
			[]Node{drained}, job("COMPLETED", "COMPLETING"), now.Add(1), Occupied,
		},
		"drained, job not understood": {[]Node{drained}, job("NEW"), now.Add(1), Occupied},
		"idle":                        {[]Node{{Name: "n", State: StateIdle}}, nil, now.Add(1), Open},
		"busy": {
			[]Node{{Name: "n", State: StateMixed, Flags: FlagDrain}}, nil, now.Add(1), Occupied,
		},
		"absent":                                 {nil, nil, now.Add(1), Absent},
		"absent, job runs":                       {nil, job("RUNNING"), now.Add(1), Occupied},
		"drained, snapshot as old as the drain":  {[]Node{drained}, nil, now, Uncertain},
		"drained, snapshot older than the drain": {[]Node{drained}, nil, now.Add(-1), Uncertain},
		"absent, snapshot too old":               {nil, nil, now.Add(-1), Uncertain},
		"drained, snapshot without time":         {[]Node{drained}, nil, time.Time{}, Uncertain},
	} {
		t.Run(name, func(t *testing.T) {
			queue, err := count(test.jobs, 0)
			if err != nil {
				t.Fatal(err)
			}
			snapshot := &Snapshot{Queue: queue, NodesAsOf: test.asOf, JobsAsOf: test.asOf}
			snapshot.Nodes, _ = shareNodes(nil, test.nodes)
			if got := snapshot.Vacancy("n", now); got != test.want {
				t.Errorf("vacancy is %s, want %s", got, test.want)
			}
			for _, half := range []*Snapshot{{NodesAsOf: test.asOf}, {JobsAsOf: test.asOf}, nil} {
				if half.Vacancy("n", now) != Uncertain {
					t.Error("half a snapshot is not uncertain")
				}
			}
		})
	}
}

func TestCount(t *testing.T) {
	end := time.Unix(1000, 0)
	got, err := count([]Job{
		{ID: 1, States: []string{"RUNNING"}, Nodes: "n[0-1]", Partition: "p", End: end},
		{ID: 2, States: []string{"RUNNING"}, Nodes: "n1", Partition: "p", End: end.Add(time.Hour)},
		{ID: 3, States: []string{"COMPLETED", "COMPLETING"}, Nodes: "n1", Partition: "completing", End: end},
		{ID: 4, States: []string{"SUSPENDED"}, Nodes: "n2", Partition: "suspended"},
		{ID: 5, States: []string{"PENDING"}, Partition: "p,pending"},
		{ID: 6, States: []string{"FAILED"}, Nodes: "n3", Partition: "ended"},
		{ID: 7, Partition: "odd"},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := Queue{
		Pending: 1, Running: 2,
		Loads: map[string]Load{
			"n0": {Running: 1, Until: end, Job: 1},
			"n1": {Running: 2, Completing: 1, Until: end.Add(time.Hour), Job: 2},
			"n2": {Other: 1, Job: 4, Unlimited: true},
		},
		Partitions: map[string]int{"p": 3, "completing": 1, "suspended": 1, "pending": 1, "odd": 1},
		Waiting:    map[Waiting]int{{"p", PendingOther}: 1, {"pending", PendingOther}: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := count([]Job{{States: []string{"RUNNING"}, Nodes: "n[0-"}}, 0); err == nil {
		t.Error("a job with malformed nodes was accepted")
	}
}

// The start of a long list says what it proves, its end how soon after it a decision can be made.
// The states of many jobs are read after the nodes, which are published when that has ended.
func TestEndOfAPollOfALongQueueIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		cluster.jobs = queued(1, 1500)
		cluster.afterStates = func() { time.Sleep(3 * time.Second) }
		mirror := runMirror(t, cluster)
		snapshot, err := mirror.Refresh(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !snapshot.Partial || time.Since(snapshot.NodesAsOf) < 3*time.Second {
			t.Fatalf("the nodes were read %s ago, with the jobs listed: %t", time.Since(snapshot.NodesAsOf), !snapshot.Partial)
		}
		if listed, read := time.Since(snapshot.ListedAt()), time.Since(snapshot.NodeReadBy("a")); listed != 0 || read != 0 {
			t.Errorf("the poll was complete %s and %s ago", listed, read)
		}
	})
}

func TestEndOfALongListIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		cluster.slow = 7 * time.Second
		mirror := runMirror(t, cluster)
		snapshot, err := mirror.Refresh(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began, ended := time.Since(snapshot.NodesAsOf), time.Since(snapshot.ListedAt())
		if began != 7*time.Second || ended != 0 {
			t.Errorf("the list began %s ago, and ended %s ago", began, ended)
		}
	})
}
