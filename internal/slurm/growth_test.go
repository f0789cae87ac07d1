package slurm

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// changeable is a cluster whose nodes change like those of a scripted one.
type changeable interface {
	change(name string, change func(*Node))
	count(request string) int
}

// requestsTo returns how many requests a cluster has answered, and how many of them were for single nodes.
func requestsTo(cluster changeable) (all, singles int) {
	for _, request := range []string{"diag", "nodes", "node", "jobs", "states", "job"} {
		all += cluster.count(request)
	}
	if tracked, ok := cluster.(*tracked); ok {
		all += tracked.questions()
	}
	return all, cluster.count("node")
}

// While a large NodeSet is created, a list shows many new nodes at once, so they are not read alone: requests do not
// grow with the number of nodes.
func TestManyNewNodesAreListed(t *testing.T) {
	for name, tracks := range map[string]bool{"without a tracker": false, "with a tracker": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cluster changeable
				var mirror *Mirror
				if tracks {
					cluster, mirror, _ = runTracked(t)
				} else {
					cluster, mirror = runLarge(t)
				}
				time.Sleep(time.Minute)
				const nodes = 3000
				before, singlesBefore := requestsTo(cluster)
				var unseen []string
				var latest time.Duration // that a node took to show
				registered := map[string]time.Time{}
				look := func() {
					snapshot := mirror.Snapshot()
					for len(unseen) > 0 {
						if _, known := snapshot.Node(unseen[0]); !known {
							break
						}
						latest = max(latest, time.Since(registered[unseen[0]]))
						unseen = unseen[1:]
					}
				}
				for i := range nodes { // a hundred seconds
					name := fmt.Sprintf("new%d", i)
					cluster.change(name, func(n *Node) { n.State = StateIdle })
					unseen, registered[name] = append(unseen, name), time.Now()
					mirror.Expect(unseen...)
					time.Sleep(time.Second / 30)
					look()
				}
				for range 30 {
					time.Sleep(time.Second)
					look()
				}
				all, singles := requestsTo(cluster)
				all, singles = all-before, singles-singlesBefore
				t.Logf("%d requests, %d of them for single nodes; nodes show after at most %s", all, singles, latest)
				if len(unseen) > 0 || latest > 15*time.Second {
					t.Errorf("%d nodes do not show, the others after at most %s", len(unseen), latest)
				}
				// What the tracker names first may be in a list already.
				if all > nodes/40 || singles > 2*maxNew {
					t.Errorf("%d requests for %d nodes, %d of them for single nodes", all, nodes, singles)
				}
			})
		})
	}
}
