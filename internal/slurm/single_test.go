package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newLarge returns a cluster with 2,000 idle nodes n0, n1 and so on, whose list takes two seconds.
func newLarge() *scripted {
	cluster := newScripted()
	for i := range 2 * minListed {
		name := fmt.Sprintf("n%d", i)
		cluster.nodes[name] = Node{Name: name, State: StateIdle}
	}
	cluster.slow = 2 * time.Second
	return cluster
}

// runLarge runs a mirror of such a cluster that has listed all nodes.
func runLarge(t *testing.T) (*scripted, *Mirror) {
	t.Helper()
	cluster := newLarge()
	mirror := runMirror(t, cluster)
	if _, err := mirror.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return cluster, mirror
}

// refreshedNodes returns a snapshot with newer records of nodes, and how many lists and single reads it took.
func refreshedNodes(t *testing.T, cluster *scripted, mirror *Mirror, nodes ...string) (snapshot *Snapshot, lists,
	singles int) {
	t.Helper()
	lists, singles = cluster.count("nodes"), cluster.count("node")
	snapshot, err := mirror.RefreshNodes(t.Context(), nodes)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot, cluster.count("nodes") - lists, cluster.count("node") - singles
}

func TestRefreshOfFewNodesReadsOnlyThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, mirror := runLarge(t)
		cluster.change("n5", func(n *Node) { n.Flags = FlagDrain })
		cluster.change("n6", func(n *Node) { n.Flags = FlagDrain })
		time.Sleep(time.Second)
		moment := time.Now()
		snapshot, lists, singles := refreshedNodes(t, cluster, mirror, "n5", "n7")
		if lists != 0 || singles != 2 {
			t.Errorf("%d lists and %d single reads", lists, singles)
		}
		for name, want := range map[string]Vacancy{"n5": Drained, "n7": Open, "n6": Uncertain, "missing": Uncertain} {
			if got := snapshot.Vacancy(name, moment); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		if snapshot.TakenAfter(moment) || !snapshot.JobsAsOf.After(moment) ||
			snapshot.NodeAsOf("n5").Before(snapshot.JobsAsOf) {
			t.Errorf("the snapshot is as of %s, its jobs of %s, n5 of %s", snapshot.NodesAsOf, snapshot.JobsAsOf,
				snapshot.NodeAsOf("n5"))
		}
		// The next list supersedes them.
		if snapshot, err := mirror.Refresh(t.Context()); err != nil || snapshot.Vacancy("n6", moment) != Drained ||
			snapshot.NodeAsOf("n5") != snapshot.NodesAsOf || snapshot.nodeTimes != nil {
			t.Errorf("n6 is %s, n5 as of %s: %v", snapshot.Vacancy("n6", moment), snapshot.NodeAsOf("n5"), err)
		}
	})
}

func TestRefreshOfNodesListsThemAll(t *testing.T) {
	many := make([]string, 2*minListed/singleCost+1)
	for i := range many {
		many[i] = fmt.Sprintf("n%d", i)
	}
	for name, test := range map[string]struct {
		prepare func(*scripted)
		nodes   []string
	}{
		"if there are many":              {nil, many},
		"if one is not in the last list": {nil, []string{"n1", "missing"}},
		"if one was deleted": {func(s *scripted) {
			delete(s.nodes, "n1")
			s.nodesAt = time.Now().Unix()
		}, []string{"n1"}},
		"if there are too many jobs to list, and one is suspended": {func(s *scripted) {
			s.jobs = append(queued(10, 5000), Job{ID: 7, States: []string{"SUSPENDED"}, Nodes: "n2"})
			s.rpcs["REQUEST_SUBMIT_BATCH_JOB"]++
		}, []string{"n1"}},
		"if slurmctld has restarted": {func(s *scripted) { s.since = time.Now() }, []string{"n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster, mirror := runLarge(t)
				time.Sleep(time.Second)
				if test.prepare != nil {
					cluster.set(func() { test.prepare(cluster) })
				}
				moment := time.Now()
				snapshot, lists, _ := refreshedNodes(t, cluster, mirror, test.nodes...)
				if lists != 1 || !snapshot.TakenAfter(moment) {
					t.Errorf("%d lists, and the snapshot is as of %s", lists, snapshot.NodesAsOf)
				}
				_, exists := cluster.nodes["n1"]
				if vacancy := snapshot.Vacancy("n1", moment); (vacancy == Absent) == exists {
					t.Errorf("n1 is %s", vacancy)
				}
			})
		})
	}
}

// TestReadsOfNodesEnd checks when the record of n1 was read at the latest.
func TestReadsOfNodesEnd(t *testing.T) {
	listed := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	list := &Snapshot{NodesAsOf: listed, readAt: listed, listedBy: listed.Add(3 * time.Second)}
	alone := func(name string, after time.Duration, last *Snapshot) *Snapshot {
		next := &Snapshot{}
		*next = *last
		(&Mirror{}).merge(next, []Node{{Name: name}}, listed.Add(after))
		next.readBy = next.readAt.Add(time.Second)
		return next
	}
	for name, test := range map[string]struct {
		snapshot *Snapshot
		want     time.Duration
	}{
		"in a list":                    {list, 3 * time.Second},
		"alone":                        {alone("n1", 10*time.Second, list), 11 * time.Second},
		"before another one was":       {alone("n2", 20*time.Second, alone("n1", 10*time.Second, list)), 10 * time.Second},
		"in a list, before another is": {alone("n2", 10*time.Second, list), 3 * time.Second},
	} {
		if got := test.snapshot.NodeReadBy("n1"); !got.Equal(listed.Add(test.want)) {
			t.Errorf("%s: after %s, want %s", name, got.Sub(listed), test.want)
		}
	}
}

func TestOldListIsNotCompleteEnough(t *testing.T) {
	mirror, last := NewMirror(newScripted(), MirrorOptions{}), &Snapshot{}
	for name := range newLarge().nodes {
		last.Nodes = append(last.Nodes, &Node{Name: name})
	}
	slices.SortFunc(last.Nodes, func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
	for age, want := range map[time.Duration]bool{0: true, 2 * maxListAge: false} {
		last.NodesAsOf = time.Now().Add(-age)
		if got := mirror.isCheaper(last, []string{"n1"}); got != want {
			t.Errorf("with a list from %s ago: %t", age, got)
		}
	}
}

func TestRefreshOfNodesInSmallClusterListsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a", "b")
		mirror := runMirror(t, cluster)
		take(t, mirror.Subscribe())
		if _, lists, singles := refreshedNodes(t, cluster, mirror, "a"); lists != 1 || singles != 0 {
			t.Errorf("%d lists and %d single reads", lists, singles)
		}
	})
}

func TestRefreshOfNodesFailsWithOneOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, mirror := runLarge(t)
		moment := time.Now()
		cluster.set(func() { cluster.nodeErr = &Error{Kind: Timeout, Op: "x"} })
		snapshot, err := mirror.RefreshNodes(t.Context(), []string{"n1"})
		if !errors.Is(err, Timeout) || snapshot != nil {
			t.Errorf("error is %v", err)
		}
		if vacancy := mirror.Snapshot().Vacancy("n1", moment); vacancy != Uncertain {
			t.Errorf("it is %s", vacancy)
		}
	})
}

func TestCallersOfRefreshShareReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, mirror := runLarge(t)
		polls, singles, lists := cluster.polls(), cluster.count("node"), cluster.count("nodes")
		done := make(chan error)
		for _, nodes := range [][]string{{"n1", "n2"}, {"n2", "n3"}} {
			go func() {
				snapshot, err := mirror.RefreshNodes(t.Context(), nodes)
				if err == nil && !snapshot.NodeAsOf(nodes[1]).After(snapshot.NodesAsOf) {
					err = errors.New("it was not read")
				}
				done <- err
			}()
		}
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
		if polls, singles := cluster.polls()-polls, cluster.count("node")-singles; polls != 1 || singles != 3 {
			t.Errorf("%d polls with %d single reads", polls, singles)
		}
		go func() {
			_, err := mirror.Refresh(t.Context())
			done <- err
		}()
		snapshot, err := mirror.RefreshNodes(t.Context(), []string{"n1"})
		if err := errors.Join(err, <-done); err != nil || !snapshot.NodesAsOf.After(time.Now().Add(-3*time.Second)) ||
			cluster.count("nodes") != lists+1 {
			t.Errorf("as of %s: %v", snapshot.NodesAsOf, err)
		}
	})
}

func TestMirrorReadsMarkedNodesBetweenLists(t *testing.T) {
	for name, test := range map[string]func(*scripted, *Mirror){
		"a node that the operator has changed": func(cluster *scripted, mirror *Mirror) {
			cluster.change("n7", func(n *Node) { n.Flags = FlagDrain })
			mirror.Nudge("n7")
		},
		"a node that registers": func(cluster *scripted, mirror *Mirror) {
			mirror.Expect("n7777")
			cluster.change("n7777", func(n *Node) { n.State = StateIdle })
		},
		"a node whose jobs change": func(cluster *scripted, mirror *Mirror) {
			cluster.set(func() {
				cluster.jobs = []Job{{ID: 1, States: []string{"RUNNING"}, Nodes: "n7"}}
				cluster.nodes["n7"] = Node{Name: "n7", State: StateAllocated}
				cluster.jobsAt, cluster.nodesAt = time.Now().Unix(), time.Now().Unix()
				cluster.rpcs["REQUEST_SUBMIT_BATCH_JOB"]++
			})
			mirror.Expect()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster, mirror := runLarge(t)
				changes := mirror.Subscribe()
				take(t, changes)
				lists, start := cluster.count("nodes"), time.Now()
				test(cluster, mirror)
				got := take(t, changes)
				if late := time.Since(start); len(got) != 1 || late > 2500*time.Millisecond ||
					cluster.count("nodes") != lists {
					t.Errorf("%v changed after %s and %d lists", got, late, cluster.count("nodes")-lists)
				}
				record, _ := mirror.Snapshot().Node(got[0])
				if diff := cmp.Diff(cluster.nodes[got[0]], *record); diff != "" {
					t.Error(diff)
				}
				if !slices.IsSorted(names(mirror.Snapshot().Nodes)) {
					t.Error("the nodes are not sorted")
				}
				// The next list follows all the same, and supersedes single reads.
				cluster.change("n9", func(n *Node) { n.Reason = "bad memory" })
				if got := take(t, changes); !slices.Contains(got, "n9") {
					t.Errorf("%v changed", got)
				}
				if mirror.Snapshot().nodeTimes != nil {
					t.Error("single reads outlive a list")
				}
			})
		})
	}
}

func TestManyMarkedNodesWaitForTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, mirror := runLarge(t)
		var names []string
		for i := range maxMarked + 1 {
			names = append(names, fmt.Sprintf("n%d", i))
			cluster.change(names[i], func(n *Node) { n.Flags = FlagDrain })
		}
		mirror.Nudge(names...)
		time.Sleep(time.Minute)
		if singles := cluster.count("node"); singles > 0 {
			t.Errorf("%d single reads", singles)
		}
		if node, _ := mirror.Snapshot().Node("n0"); !node.Draining() {
			t.Error("the list does not show them")
		}
	})
}
