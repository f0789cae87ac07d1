package slurm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// queued returns pending jobs.
func queued(first int64, count int) []Job {
	jobs := make([]Job, count)
	for i := range jobs {
		jobs[i] = Job{ID: first + int64(i), States: []string{"PENDING"}, Partition: "p"}
	}
	return jobs
}

// drained returns the record of a drained node without jobs.
func drained(name string) Node { return Node{Name: name, State: StateIdle, Flags: FlagDrain} }

// refreshed returns a refreshed snapshot and the vacancy of a node that it proves.
func refreshed(t *testing.T, mirror *Mirror, node string) (*Snapshot, Vacancy) {
	t.Helper()
	before := time.Now()
	snapshot, err := mirror.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snapshot, snapshot.Vacancy(node, before)
}

func TestLargeQueueIsNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("idle")
		cluster.nodes["idle"] = drained("idle")
		for i := range 5000 {
			name := fmt.Sprintf("n%d", i)
			cluster.nodes[name] = Node{Name: name, State: StateMixed, Flags: FlagDrain, AllocatedCPUs: 4}
		}
		cluster.jobs = queued(1, 100_000)
		for i := range 20_000 {
			cluster.jobs = append(cluster.jobs, Job{
				ID: int64(200_000 + i), States: []string{"RUNNING"}, Nodes: fmt.Sprintf("n%d", i%5000),
				End: time.Now().Add(time.Hour),
			})
		}
		mirror := runMirror(t, cluster)
		take(t, mirror.Subscribe())
		cluster.set(func() { cluster.sent = 0 })
		snapshot, vacancy := refreshed(t, mirror, "idle")
		if vacancy != Drained {
			t.Errorf("a drained node is %s", vacancy)
		}
		if got := snapshot.Vacancy("n7", time.Time{}.Add(1)); got != Occupied {
			t.Errorf("a busy node is %s", got)
		}
		if !snapshot.Partial || snapshot.Pending != 100_000 || snapshot.Running != 20_000 ||
			len(snapshot.Loads) != 5000 {
			t.Errorf("partial is %t, %d pending, %d running, %d loads", snapshot.Partial, snapshot.Pending,
				snapshot.Running, len(snapshot.Loads))
		}
		cluster.set(func() {
			if cluster.requests["jobs"] > 0 {
				t.Errorf("the jobs were listed %d times", cluster.requests["jobs"])
			}
			if details := int64(maxFill * 5000); cluster.sent > 2*37*121_000+2*cluster.size+details+20_000 {
				t.Errorf("a refresh took %d bytes", cluster.sent)
			}
		})
	})
}

func TestLargeQueueJobsAreFetchedGradually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a", "b")
		busy := Node{State: StateMixed, AllocatedCPUs: 4}
		cluster.nodes["a"], cluster.nodes["b"] = busy, busy
		for name, node := range cluster.nodes {
			node.Name = name
			cluster.nodes[name] = node
		}
		end := time.Now().Add(24 * time.Hour)
		for i := range 3000 {
			cluster.jobs = append(cluster.jobs, Job{
				ID: int64(1 + i), States: []string{"RUNNING"}, Nodes: "a", End: end,
			})
		}
		mirror := runMirror(t, cluster)
		if snapshot, _ := refreshed(t, mirror, "a"); snapshot.Loads["b"] != (Load{Running: 1, Unlimited: true}) {
			t.Errorf("the load of a node with unknown jobs is %+v", snapshot.Loads["b"])
		}
		time.Sleep(3000 / maxFill * 11 * time.Second)
		if load := mirror.Snapshot().Loads["a"]; load.Running != 3000 || !load.Until.Equal(end) {
			t.Errorf("load is %+v", load)
		}
		// A job is requeued to another node between two polls, and its old node becomes idle.
		cluster.set(func() {
			cluster.requests["job"], cluster.jobs[0].Nodes, cluster.nodes["a"] = 0, "b", Node{
				Name: "a", State: StateIdle,
			}
		})
		cluster.change("b", func(*Node) {})
		time.Sleep(5 * time.Minute)
		snapshot, _ := refreshed(t, mirror, "a")
		if load := snapshot.Loads["b"]; load.Job != 1 || !load.Until.Equal(end) {
			t.Errorf("load of the other node is %+v", load)
		}
	})
}

func TestLargeQueueHiddenJobsOccupyTheirNodes(t *testing.T) {
	for name, states := range map[string][]string{
		"suspended": {"SUSPENDED"}, "not understood": {"RUNNING", "LEVITATING"}, "new base state": {"DREAMING"},
		"staging out": {
			"COMPLETED", "STAGE_OUT",
		},
		"being resized": {"RUNNING", "RESIZING"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newScripted("a", "b")
				cluster.nodes["a"], cluster.nodes["b"] = drained("a"), drained("b")
				cluster.jobs = append(queued(10, 1500), Job{ID: 7, States: states, Nodes: "a"})
				mirror := runMirror(t, cluster)
				snapshot, vacancy := refreshed(t, mirror, "a")
				if vacancy != Occupied || snapshot.Loads["a"].Job != 7 {
					t.Errorf("its node is %s: %+v", vacancy, snapshot.Loads["a"])
				}
				if _, vacancy = refreshed(t, mirror, "b"); vacancy != Drained {
					t.Errorf("another node is %s", vacancy)
				}
				// A requeued job keeps its number and is suspended on another node.
				cluster.set(func() { cluster.jobs[1500].Nodes = "b" })
				time.Sleep(hiddenMaxAge)
				if _, vacancy = refreshed(t, mirror, "b"); vacancy != Occupied {
					t.Errorf("its new node is %s", vacancy)
				}
				// Details that cannot be read prove nothing.
				cluster.set(func() { cluster.jobErr = &Error{Kind: Timeout, Op: "get job"} })
				time.Sleep(hiddenMaxAge)
				moment := time.Now()
				if _, err := mirror.Refresh(t.Context()); !errors.Is(err, Timeout) ||
					mirror.Snapshot().Vacancy("a", moment) != Uncertain {
					t.Errorf("error is %v, node is %s", err, mirror.Snapshot().Vacancy("a", moment))
				}
			})
		})
	}
}

// A job is suspended or resumed between the reads that a decision is based on.
func TestLargeQueueJobSuspendedWhileNodesAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		afterNodes    bool // instead of before the nodes are read
		counts        bool
		alone         bool // its node is read alone, if no job is suspended
	}{
		"suspended before":          {before: "RUNNING", after: "SUSPENDED"},
		"resumed before":            {before: "SUSPENDED", after: "RUNNING"},
		"resumed after":             {before: "SUSPENDED", after: "RUNNING", afterNodes: true},
		"suspended before, counted": {before: "RUNNING", after: "SUSPENDED", counts: true},
		"resumed after, counted":    {before: "SUSPENDED", after: "RUNNING", afterNodes: true, counts: true},

		"suspended before, one node":          {before: "RUNNING", after: "SUSPENDED", alone: true},
		"resumed before, one node":            {before: "SUSPENDED", after: "RUNNING", alone: true},
		"suspended before, counted, one node": {before: "RUNNING", after: "SUSPENDED", counts: true, alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster, wanted := newScripted("a"), demand{full: true}
				var reader Reader = cluster
				waiting := 1500
				if test.alone {
					maps.Copy(cluster.nodes, newLarge().nodes)
					wanted.nodes = []string{"a"}
				}
				if test.counts {
					reader, waiting = counted{cluster}, 15_000
				}
				cluster.nodes["a"] = Node{Name: "a", State: StateMixed, Flags: FlagDrain, AllocatedCPUs: 1}
				cluster.jobs = append(queued(10, waiting), Job{ID: 7, States: []string{"RUNNING"}, Nodes: "a"})
				mirror := NewMirror(reader, MirrorOptions{}) // not running, so that it reads no details after the polls
				if poll := mirror.poll(t.Context(), demand{full: true}); poll.Err != nil {
					t.Fatal(poll.Err)
				}
				time.Sleep(30 * time.Second)
				moment, listed := time.Now(), cluster.requests["nodes"]
				time.Sleep(time.Nanosecond)
				happened := false
				change := func() {
					cluster.afterStates, cluster.afterNodes, happened = nil, nil, true
					cluster.jobs[waiting].States = []string{test.after}
				}
				cluster.jobs[waiting].States, cluster.nodes["a"], cluster.nodesAt = []string{test.before}, drained(
					"a"), time.Now().Unix()
				if cluster.afterStates = change; test.afterNodes {
					cluster.afterStates, cluster.afterNodes = nil, change
				}
				if poll := mirror.poll(t.Context(), wanted); poll.Err != nil || !happened {
					t.Fatal(poll.Err)
				}
				if alone := cluster.requests["nodes"] == listed; alone != (test.alone && test.before == "RUNNING") {
					t.Errorf("its node was read alone: %t", alone)
				}
				if vacancy := mirror.Snapshot().Vacancy("a", moment); vacancy != Occupied {
					t.Errorf("its node is %s", vacancy)
				}
			})
		})
	}
}

// With many jobs, a decision about some nodes reads these alone, between two reads of the job states. Nodes that were
// not read between these are not proved by them, even if they were read recently.
func TestLargeQueueRefreshOfFewNodesReadsOnlyThem(t *testing.T) {
	for name, waiting := range map[string]int{"states": 1500, "counts": 15_000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newLarge()
				cluster.jobs = append(queued(10, waiting), Job{ID: 7, States: []string{"RUNNING"}, Nodes: "n7"})
				cluster.nodes["n5"], cluster.nodes["n6"] = drained("n5"), drained("n6")
				cluster.nodes["n7"] = Node{Name: "n7", State: StateMixed, Flags: FlagDrain, AllocatedCPUs: 1}
				mirror := runMirror(t, counted{cluster})
				moment := time.Now()
				time.Sleep(time.Nanosecond)
				if snapshot, vacancy := refreshed(t, mirror, "n6"); vacancy != Drained || !snapshot.Partial {
					t.Fatalf("n6 is %s", vacancy)
				}
				time.Sleep(30 * time.Second)
				lists := cluster.count("full")
				snapshot, _, singles := refreshedNodes(t, cluster, mirror, "n5", "n7")
				if more := cluster.count("full") - lists; more != 0 || singles != 2 {
					t.Errorf("%d lists and %d single reads", more, singles)
				}
				for name, want := range map[string]Vacancy{"n5": Drained, "n7": Occupied, "n6": Uncertain} {
					if got := snapshot.Vacancy(name, moment); got != want {
						t.Errorf("%s is %s, want %s", name, got, want)
					}
				}
			})
		})
	}
}

// With many jobs, changes show as soon as with few.
func TestLargeQueueChangesNeedNoList(t *testing.T) {
	for name, waiting := range map[string]int{"few jobs": 0, "many jobs": 1500, "counts": 15_000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := &tracked{scripted: newLarge()}
				cluster.jobs = queued(10, waiting)
				mirror := runMirror(t, countedAndTracked{cluster, counted{cluster.scripted}})
				changes := mirror.Subscribe()
				time.Sleep(time.Minute)
				changes.Take()
				lists := cluster.count("full")
				for i := range 20 {
					name := fmt.Sprintf("n%d", 50*i)
					cluster.change(name, func(n *Node) { n.Reason = "bad memory" })
					mirror.Nudge()
					if late := shownAfter(t, changes, name); late > 3*time.Second {
						t.Errorf("change %d of %s shows after %s", i, name, late)
					}
				}
				if more := cluster.count("full") - lists; more > 0 {
					t.Errorf("%d lists", more)
				}
				asked, states := cluster.questions(), cluster.count("states")+cluster.count("census")
				time.Sleep(10 * time.Minute)
				asked, states = cluster.questions()-asked, cluster.count("states")+cluster.count("census")-states
				if asked > 25 || states > 0 {
					t.Errorf("%d questions, and %d reads of job states, while nothing changes", asked, states)
				}
			})
		})
	}
}

// countedAndTracked is a cluster with metrics and a tracker.
type countedAndTracked struct {
	*tracked
	counted counted
}

func (c countedAndTracked) JobCensus(ctx context.Context) (JobCensus, error) {
	return c.counted.JobCensus(ctx)
}

// Only job states that were read both before and after the nodes prove something about them.
func TestLargeQueueNeedsRefreshAsProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		cluster.nodes["a"] = drained("a")
		cluster.jobs = queued(10, 1500)
		mirror := runMirror(t, cluster)
		changes := mirror.Subscribe()
		take(t, changes)
		time.Sleep(time.Minute)
		moment := time.Now()
		cluster.change("a", func(n *Node) { n.Comment = "changed" })
		take(t, changes)
		if vacancy := mirror.Snapshot().Vacancy("a", moment); vacancy != Uncertain {
			t.Errorf("node is %s", vacancy)
		}
		if _, vacancy := refreshed(t, mirror, "a"); vacancy != Drained {
			t.Errorf("node is %s after a refresh", vacancy)
		}
	})
}

func TestLargeQueueAbsentNodeWaitsForCompletingJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		cluster.jobs = append(queued(10, 1500), Job{ID: 7, States: []string{"CANCELLED", "COMPLETING"}, Nodes: "gone"})
		cluster.jobErr = &Error{Kind: Failed, Op: "get job"}
		mirror := runMirror(t, cluster)
		if _, vacancy := refreshed(t, mirror, "gone"); vacancy != Uncertain {
			t.Errorf("the node is %s while a job is cleaned up on an unknown node", vacancy)
		}
		cluster.set(func() { cluster.jobErr = nil })
		refreshed(t, mirror, "gone")
		if _, vacancy := refreshed(t, mirror, "gone"); vacancy != Occupied {
			t.Errorf("the node is %s", vacancy)
		}
		if _, vacancy := refreshed(t, mirror, "other"); vacancy != Absent {
			t.Errorf("another node is %s", vacancy)
		}
	})
}

func TestLargeQueueKeepsNodeUpdatesWhenJobRequestsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		cluster.jobs = append(queued(10, 1500), Job{ID: 7, States: []string{"SUSPENDED"}, Nodes: "b"})
		mirror := runMirror(t, cluster)
		changes := mirror.Subscribe()
		take(t, changes)
		time.Sleep(time.Minute)
		cluster.set(func() { cluster.jobErr = &Error{Kind: Failed, Op: "get job"} })
		cluster.change("a", func(n *Node) { n.State = StateDown })
		time.Sleep(time.Minute)
		cluster.set(func() { cluster.jobErr = nil })
		take(t, changes)
		if node, _ := mirror.Snapshot().Node("a"); node.State != StateDown {
			t.Errorf("node is %s", node.State)
		}
	})
}

// A counted cluster also implements JobCounter, like slurmctld's metrics.
type counted struct{ *scripted }

func (c counted) JobCensus(context.Context) (JobCensus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests["census"]++
	if c.afterStates != nil {
		defer c.afterStates()
	}
	census := JobCensus{Jobs: len(c.jobs)}
	for i := range c.jobs {
		switch job := &c.jobs[i]; {
		case job.Completing():
			census.Completing++
		case job.Pending():
			census.Pending++
		case job.Running():
			census.Running++
		case job.Holds():
			census.Hidden++
		}
	}
	return census, c.err
}

func TestHugeQueueIsOnlyCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a", "busy")
		cluster.nodes["a"], cluster.nodes["busy"] = drained("a"), Node{
			Name: "busy", State: StateAllocated, Flags: FlagDrain,
		}
		cluster.jobs = append(queued(10, 100_000), Job{ID: 7, States: []string{"RUNNING"}, Nodes: "busy"})
		mirror := runMirror(t, counted{cluster})
		snapshot, vacancy := refreshed(t, mirror, "a")
		if vacancy != Drained || snapshot.Pending != 100_000 || snapshot.Running != 1 ||
			snapshot.Loads["busy"].Running != 1 {
			t.Errorf("node is %s: %+v", vacancy, snapshot.Queue)
		}
		if _, vacancy = refreshed(t, mirror, "busy"); vacancy != Occupied {
			t.Errorf("a busy node is %s", vacancy)
		}
		cluster.set(func() {
			if cluster.requests["states"]+cluster.requests["jobs"]+cluster.requests["job"] > 0 {
				t.Errorf("requests were %v", cluster.requests)
			}
			cluster.jobs[100_000] = Job{ID: 7, States: []string{"SUSPENDED"}, Nodes: "a"}
		})
		if _, vacancy = refreshed(t, mirror, "a"); vacancy != Occupied {
			t.Errorf("the node of a suspended job is %s", vacancy)
		}
		cluster.set(
			func() { cluster.jobs[100_000] = Job{ID: 7, States: []string{"CANCELLED", "COMPLETING"}, Nodes: "a"} })
		time.Sleep(time.Minute)
		if _, vacancy = refreshed(t, mirror, "gone"); vacancy != Uncertain {
			t.Errorf("an unknown node is %s while a job is cleaned up", vacancy)
		}
	})
}

func TestMirrorListsJobsAgainWhenQueueShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		cluster.jobs = queued(10, 1500)
		mirror := runMirror(t, cluster)
		if snapshot, _ := refreshed(t, mirror, "a"); !snapshot.Partial {
			t.Error("1,500 jobs were listed")
		}
		cluster.set(func() {
			cluster.jobs = []Job{{ID: 7, States: []string{"RUNNING"}, Nodes: "a", Partition: "p"}}
			cluster.jobsAt = time.Now().Unix()
		})
		refreshed(t, mirror, "a")
		snapshot, _ := refreshed(t, mirror, "a")
		if diff := cmp.Diff(map[string]int{"p": 1}, snapshot.Partitions); diff != "" || snapshot.Partial ||
			snapshot.Loads["a"].Job != 7 {
			t.Errorf("snapshot is %+v: %s", snapshot.Queue, diff)
		}
	})
}

func TestIdleQueueIsNotRecounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		runMirror(t, cluster)
		time.Sleep(time.Hour)
		cluster.set(func() {
			if asked := cluster.requests["states"]; asked != 1 {
				t.Errorf("the states of jobs were read %d times", asked)
			}
		})
	})
}

func TestOverloadNamesTheRemedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		cluster.jobs = queued(10, 1500)
		mirror := runMirror(t, cluster)
		refreshed(t, mirror, "a")
		cluster.set(func() { cluster.statesErr = &Error{Kind: Timeout, Op: "list job states"} })
		_, err := mirror.Refresh(t.Context())
		if !errors.Is(err, Timeout) || Result(err) != "timeout" || !strings.Contains(err.Error(), "1500 jobs") ||
			!strings.Contains(err.Error(), "MaxJobCount") {
			t.Errorf("error is %v", err)
		}
	})
}

func TestJobStateNumber(t *testing.T) {
	for id, want := range map[string]int64{"7": 7, "9_2": 9, "7_[2-5]": 7, "3+1": 3, "": 0, "_1": 0, "x": 0, "-1": 0} {
		if got, err := (JobState{ID: id}).Number(); got != want || (err == nil) != (want > 0) {
			t.Errorf("the number of %q is %d: %v", id, got, err)
		}
	}
}

func TestClockSkew(t *testing.T) {
	for _, skew := range []time.Duration{0, 90 * time.Second, -90 * time.Second} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				time.Sleep(time.Hour)
				cluster := newScripted("a")
				cluster.skew, cluster.since = skew, started.Add(skew)
				end := time.Now().Add(time.Hour)
				cluster.jobs = []Job{{ID: 7, States: []string{"RUNNING"}, Nodes: "a", End: end.Add(skew)}}
				mirror := runMirror(t, cluster)
				snapshot, _ := refreshed(t, mirror, "a")
				since := snapshot.ControllerSince
				if since.Sub(started).Abs() > time.Second {
					t.Errorf("slurmctld started at %s on our clock, want %s", since, started)
				}
				if until := snapshot.Loads["a"].Until; until.Sub(end).Abs() > time.Second {
					t.Errorf("the job ends at %s on our clock, want %s", until, end)
				}
				// A second of jitter indicates neither another slurmctld nor another end.
				generation := snapshot.Generation
				for _, jitter := range []time.Duration{time.Second, -time.Second} {
					time.Sleep(time.Minute)
					cluster.set(func() { cluster.skew = skew + jitter; cluster.jobsAt = time.Now().Unix() })
					if snapshot, _ = refreshed(t, mirror, "a"); !snapshot.ControllerSince.Equal(since) ||
						snapshot.Generation != generation {
						t.Errorf("after a jitter of %s slurmctld started at %s, want %s", jitter,
							snapshot.ControllerSince, since)
					}
				}
				cluster.set(func() { cluster.since = time.Now().Add(skew) })
				if snapshot, _ = refreshed(t, mirror, "a"); time.Since(snapshot.ControllerSince) > 2*time.Second {
					t.Errorf("another slurmctld started at %s", snapshot.ControllerSince)
				}
			})
		})
	}
}

// Jobs that wait for their nodes to be powered up are identified before others, of which a queue may have thousands.
func TestLargeQueueIdentifiesStartingJobsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a", "b")
		cluster.change("a", func(node *Node) { node.State, node.AllocatedCPUs = StateMixed, 4 })
		cluster.change("b", func(node *Node) {
			node.State, node.AllocatedCPUs, node.Flags = StateMixed, 4, FlagCloud|FlagPoweringUp
		})
		for i := range 3000 {
			cluster.jobs = append(cluster.jobs, Job{ID: int64(1 + i), States: []string{"RUNNING"}, Nodes: "a"})
		}
		starting := []string{"RUNNING", "CONFIGURING", "POWER_UP_NODE"}
		cluster.jobs = append(cluster.jobs, Job{ID: 9999, States: starting, Nodes: "b"})
		cluster.jobErr = &Error{Kind: Timeout, Op: "get job"}
		began := time.Now()
		mirror := runMirror(t, cluster)
		snapshot, _ := refreshed(t, mirror, "a")
		if by := snapshot.IdentifiedBy.Sub(began); by <= 0 || by > identifiedWithin+time.Second {
			t.Errorf("the job should be identified within %s", by)
		}
		cluster.set(func() { cluster.jobErr = nil })
		if _, err := mirror.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		snapshot = mirror.Snapshot()
		if snapshot.Loads["b"].Job != 9999 || !snapshot.IdentifiedBy.IsZero() {
			t.Errorf("after a poll, the load is %+v; identified by %s", snapshot.Loads["b"], snapshot.IdentifiedBy)
		}
	})
}
