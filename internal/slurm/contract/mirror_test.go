//nolint:thelper // these are the tests of the suite, not helpers
package contract

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// session runs a session with the cluster until the test ends.
func (c cluster) session(t *testing.T, options slurm.MirrorOptions) *slurm.Session {
	t.Helper()
	options.Fast = 100 * time.Millisecond
	pool := slurm.NewPool(options)
	t.Cleanup(pool.Close)
	key := slurm.Key{Namespace: "contract", Name: t.Name()}
	must(t, pool.Set(key, slurm.Settings{
		Dial: func() (slurm.Client, error) { return connect(t, c.target, always(c.token("root"))), nil },
	}))
	session, _ := pool.Get(key)
	eventually(t, "first snapshot", func() error {
		if session.Mirror.Snapshot() == nil {
			return errors.New("there is none")
		}
		return nil
	})
	return session
}

// Every acknowledged change is in the next refreshed snapshot, even with many changes per second and concurrent changes
// by other clients.
func testMirror(t *testing.T, c cluster) {
	session := c.session(t, slurm.MirrorOptions{})
	changes := session.Mirror.Subscribe()
	defer changes.Close()
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			comment := fmt.Sprintf("other %d", i)
			// The context may be cancelled in the middle of a request.
			_ = c.UpdateNodes(ctx, []string{"node-1"}, slurm.NodeUpdate{Comment: &comment})
		}
	})
	for i := range 100 {
		for _, update := range []slurm.NodeUpdate{
			{State: slurm.Drain, Reason: slurm.OurReason(fmt.Sprintf("round %d", i))},
			{State: slurm.Undrain},
		} {
			acknowledged, err := session.UpdateNodes(t.Context(), []string{"node-0"}, update)
			must(t, err)
			snapshot, err := session.Mirror.Refresh(t.Context())
			must(t, err)
			node, ok := snapshot.Node("node-0")
			if !ok || !snapshot.TakenAfter(acknowledged) || node.Draining() != (update.State == slurm.Drain) {
				t.Fatalf("round %d: after %s the snapshot has %+v", i, update.State, node)
			}
			if update.Reason != "" && node.Reason != update.Reason {
				t.Fatalf("round %d: reason is %q", i, node.Reason)
			}
		}
	}
	stop()
	others.Wait()
	eventually(t, "mirror to equal a list", func() error {
		snapshot, err := session.Mirror.Refresh(t.Context())
		if err != nil {
			return err
		}
		list, err := c.Nodes(t.Context(), 0)
		if err != nil {
			return err
		}
		for _, node := range list.Nodes {
			if known, _ := snapshot.Node(node.Name); !node.Equal(known) {
				return errors.New(cmp.Diff(&node, known))
			}
		}
		return nil
	})
	if len(changes.Take()) != 2 {
		t.Error("the subscription does not have both nodes")
	}
	c.waitIdle(t)
}

// The proof that a pod may be deleted: none before the drain is acknowledged, occupied while the job exists, also when
// it is suspended, and drained when it has ended.
func testVacancy(options slurm.MirrorOptions) func(*testing.T, cluster) {
	return func(t *testing.T, c cluster) { proveVacancy(t, c, c.session(t, options)) }
}

func proveVacancy(t *testing.T, c cluster, session *slurm.Session) {
	id := c.submit(t, "node-0", "sleep 1000")
	acknowledged, err := session.UpdateNodes(t.Context(), both, slurm.NodeUpdate{
		State: slurm.Drain, Reason: slurm.OurReason("scale-in"),
	})
	must(t, err)
	vacancy := func(name string) slurm.Vacancy {
		snapshot, err := session.Mirror.Refresh(t.Context())
		must(t, err)
		return snapshot.Vacancy(name, acknowledged)
	}
	if got := vacancy("node-0"); got != slurm.Occupied {
		t.Errorf("a node with a running job is %s", got)
	}
	if got := vacancy("node-1"); got != slurm.Drained {
		t.Errorf("a node without a job is %s", got)
	}
	if got := vacancy("missing"); got != slurm.Absent {
		t.Errorf("a missing node is %s", got)
	}
	c.suspend(t, id)
	if got := vacancy("node-0"); got != slurm.Occupied {
		t.Errorf("a node with a suspended job is %s", got)
	}
	if load := session.Mirror.Snapshot().Loads["node-0"]; load.Jobs() != 1 || load.Job != id || load.Until.IsZero() {
		t.Errorf("load is %+v", load)
	}
	c.resume(t, id)
	must(t, c.submitter().Cancel(t.Context(), id))
	eventually(t, "node to be drained", func() error {
		if got := vacancy("node-0"); got != slurm.Drained {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	c.undrain(t, both...)
}
