package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A tracked cluster is a scripted one that also says which nodes have changed.
type tracked struct {
	*scripted
	log   []string // names of changed nodes
	epoch int
	asked int
	fails bool
}

func (s *tracked) change(name string, change func(*Node)) {
	s.scripted.change(name, change)
	s.set(func() { s.log = append(s.log, name) })
}

func (s *tracked) NodeChanges(_ context.Context, since string) (NodeChanges, error) {
	time.Sleep(300 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.fails {
		return NodeChanges{}, errors.New("connection refused")
	}
	answer := NodeChanges{Cursor: fmt.Sprintf("%d-%d", s.epoch, len(s.log))}
	var epoch, position int
	if n, _ := fmt.Sscanf(since, "%d-%d", &epoch, &position); n < 2 || epoch != s.epoch {
		answer.Unknown = true
		return answer, nil
	}
	answer.Names = slices.Clone(s.log[position:])
	return answer, nil
}

// questions returns how often the tracker was asked.
func (s *tracked) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// runTracked runs a mirror of a cluster with 2,000 nodes whose list takes two seconds, until the tracker is in use.
func runTracked(t *testing.T) (*tracked, *Mirror, *Subscription[string]) {
	t.Helper()
	cluster := &tracked{scripted: newLarge()}
	mirror := runMirror(t, cluster)
	changes := mirror.Subscribe()
	time.Sleep(time.Minute)
	if cluster.questions() == 0 || mirror.Snapshot() == nil {
		t.Fatal("the tracker is not used")
	}
	changes.Take()
	return cluster, mirror, changes
}

// shownAfter waits for a change of a node, and returns how long it took.
func shownAfter(t *testing.T, changes *Subscription[string], name string) time.Duration {
	t.Helper()
	began := time.Now()
	for !slices.Contains(take(t, changes), name) {
		continue
	}
	return time.Since(began)
}

func TestTrackedChangesNeedNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, mirror, changes := runTracked(t)
		lists := cluster.count("full")
		for i := range 20 {
			name := "n" + strconv.Itoa(50*i)
			cluster.change(name, func(n *Node) { n.Reason = "bad memory" })
			mirror.Nudge()
			if late := shownAfter(t, changes, name); late > 3*time.Second {
				t.Errorf("change %d of %s shows after %s", i, name, late)
			}
			if node, _ := mirror.Snapshot().Node(name); node.Reason != "bad memory" {
				t.Errorf("node %+v", node)
			}
		}
		if more := cluster.count("full") - lists; more > 0 {
			t.Errorf("%d lists", more)
		}
		asked := cluster.questions()
		time.Sleep(10 * time.Minute)
		if more := cluster.questions() - asked; more > 25 { // an answer takes 0.3 s
			t.Errorf("%d questions while nothing changes", more)
		}
	})
}

// Jobs that start and end all the time make long lists of jobs, which changes of nodes need not wait for.
func TestTrackedChangesDoNotWaitForListsOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, mirror, changes := runTracked(t)
		const list = 4 * time.Second
		cluster.set(func() { cluster.slowJobs = list })
		ctx, stop := context.WithCancel(t.Context())
		var churn sync.WaitGroup
		churn.Go(func() {
			for ctx.Err() == nil {
				cluster.set(func() {
					cluster.rpcs["REQUEST_SUBMIT_BATCH_JOB"]++
					cluster.jobsAt = time.Now().Unix()
				})
				time.Sleep(time.Second)
			}
		})
		time.Sleep(time.Minute)
		for i := range 20 {
			name := "n" + strconv.Itoa(50*i)
			cluster.change(name, func(n *Node) { n.Reason = "bad memory" })
			mirror.Nudge()
			if late := shownAfter(t, changes, name); late > list+3*time.Second {
				t.Errorf("change %d of %s shows after %s", i, name, late)
			}
		}
		lists := cluster.count("jobs")
		time.Sleep(10 * time.Minute)
		if more := cluster.count("jobs") - lists; more > 600/16+2 { // a quarter of the time
			t.Errorf("%d lists of jobs of %s each in ten minutes", more, list)
		}
		stop()
		churn.Wait()
	})
}

// What the tracker says proves nothing: only the nodes that were read are newer than the list.
func TestTrackerProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, mirror, changes := runTracked(t)
		listed, moment := mirror.Snapshot().NodesAsOf, time.Now()
		cluster.change("n1", func(n *Node) { n.Flags = FlagDrain })
		mirror.Nudge()
		shownAfter(t, changes, "n1")
		snapshot := mirror.Snapshot()
		if !snapshot.NodesAsOf.Equal(listed) || !snapshot.NodeAsOf("n1").After(moment) ||
			!snapshot.ChangesAsOf().After(moment) {
			t.Errorf("the nodes are as of %s, n1 of %s, changes of %s", snapshot.NodesAsOf, snapshot.NodeAsOf("n1"),
				snapshot.ChangesAsOf())
		}
		if vacancy := snapshot.Vacancy("n2", moment); vacancy != Uncertain {
			t.Errorf("n2 is %s", vacancy)
		}
	})
}

// A decision counts other nodes too, so these must be recent: an answer of the tracker is enough for that.
func TestRefreshOfFewNodesWithTrackerNeedsNoRecentList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, mirror, _ := runTracked(t)
		time.Sleep(10 * time.Minute)
		moment := time.Now()
		snapshot, lists, singles := refreshedNodes(t, cluster.scripted, mirror, "n5")
		if lists != 0 || singles != 1 || snapshot.Vacancy("n5", moment) != Open {
			t.Errorf("%d lists, %d single reads, n5 is %s", lists, singles, snapshot.Vacancy("n5", moment))
		}
	})
}

func TestTrackedNodesAreListed(t *testing.T) {
	for name, test := range map[string]func(*tracked){
		"if one was deleted": func(cluster *tracked) {
			cluster.set(func() {
				delete(cluster.nodes, "n7")
				cluster.nodesAt = time.Now().Unix()
				cluster.rpcs["REQUEST_DELETE_NODE"]++
				cluster.log = append(cluster.log, "n7")
			})
		},
		"if many have changed": func(cluster *tracked) {
			for i := range maxMarked + 1 {
				cluster.change("n"+strconv.Itoa(i), func(n *Node) { n.Reason = "x" })
			}
		},
		"if the tracker has restarted": func(cluster *tracked) {
			cluster.change("n7", func(n *Node) { n.Reason = "x" })
			cluster.set(func() { cluster.epoch, cluster.log = 1, nil })
		},
		"if the tracker fails": func(cluster *tracked) {
			cluster.set(func() { cluster.fails = true })
			cluster.change("n7", func(n *Node) { n.Reason = "x" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster, mirror, changes := runTracked(t)
				lists := cluster.count("full")
				test(cluster)
				mirror.Nudge()
				shownAfter(t, changes, "n7")
				if more := cluster.count("full") - lists; more != 1 {
					t.Errorf("%d lists", more)
				}
				if cluster.fails {
					return
				}
				// The tracker is in use again.
				time.Sleep(2 * time.Minute)
				lists = cluster.count("full")
				cluster.change("n8", func(n *Node) { n.Reason = "y" })
				mirror.Nudge()
				shownAfter(t, changes, "n8")
				if more := cluster.count("full") - lists; more != 0 {
					t.Errorf("%d lists afterwards", more)
				}
			})
		})
	}
}

func TestFailingTrackerIsAskedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, mirror, changes := runTracked(t)
		cluster.set(func() { cluster.fails = true })
		asked := cluster.questions()
		for i := range 30 {
			name := "n" + strconv.Itoa(i)
			cluster.change(name, func(n *Node) { n.Reason = "x" })
			mirror.Nudge()
			shownAfter(t, changes, name)
			time.Sleep(time.Second)
		}
		if more := cluster.questions() - asked; more == 0 || more > 10 {
			t.Errorf("%d questions", more)
		}
	})
}

// A change between an answer and the list that follows it is in the next answer.
func TestChangeDuringTheFirstListIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, mirror, changes := runTracked(t)
		cluster.set(func() {
			cluster.epoch++ // the next answer is followed by a list
			cluster.log = nil
		})
		pending := true
		cluster.set(func() {
			cluster.afterNodes = func() { // under the lock: the list was made, and does not show this
				if pending {
					pending = false
					cluster.nodes["n5"] = Node{Name: "n5", State: StateIdle, Reason: "late"}
					cluster.log = append(cluster.log, "n5")
				}
			}
		})
		cluster.change("n9", func(n *Node) { n.Reason = "x" })
		mirror.Nudge()
		shownAfter(t, changes, "n9")
		shownAfter(t, changes, "n5")
		if node, _ := mirror.Snapshot().Node("n5"); node.Reason != "late" {
			t.Errorf("node %+v", node)
		}
	})
}

func TestSmallClustersAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := &tracked{scripted: newScripted("a", "b")}
		mirror := runMirror(t, cluster)
		changes := mirror.Subscribe()
		take(t, changes)
		cluster.change("a", func(n *Node) { n.Reason = "x" })
		mirror.Nudge()
		shownAfter(t, changes, "a")
		if asked := cluster.questions(); asked > 0 {
			t.Errorf("%d questions", asked)
		}
	})
}
