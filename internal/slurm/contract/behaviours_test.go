//nolint:thelper // these are the tests of the suite, not helpers
package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

var both = []string{"node-0", "node-1"}

func testNegotiatesAPI(t *testing.T, c cluster) {
	_, err := c.Diag(t.Context())
	must(t, err)
	api, release := "v0.0.45", "26.05."
	if c.old() {
		api, release = "v0.0.42", "24.11."
	}
	info := c.Info()
	if info.API != api || !strings.HasPrefix(info.Version.String(), release) {
		t.Errorf("negotiated %+v, want %s and %s", info, api, release)
	}
}

func testListsNodes(t *testing.T, c cluster) {
	list, err := c.Nodes(t.Context(), 0)
	must(t, err)
	var names []string
	for _, node := range list.Nodes {
		names = append(names, node.Name)
		if node.State != slurm.StateIdle || node.Flags != slurm.FlagDynamicNorm || node.OtherStates != nil {
			t.Errorf("%s is %v", node.Name, node.StateNames())
		}
		complete(t, c, &node)
		if node.Busy() || node.Draining() || node.Drained() || !node.Responding() {
			t.Errorf("%s is not idle: %v", node.Name, node.StateNames())
		}
		if one := c.node(t, node.Name); !one.Equal(&node) {
			t.Errorf("read as a single node it differs:\n%s", cmp.Diff(node, one))
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, both) || list.Cursor == 0 || list.Unchanged || list.Bytes == 0 {
		t.Errorf("nodes are %v, cursor %d, bytes %d", names, list.Cursor, list.Bytes)
	}
}

// complete checks that everything is set that a slurmd reports when it registers.
func complete(t *testing.T, c cluster, node *slurm.Node) {
	t.Helper()
	if node.Hostname != node.Name || node.Address == "" || node.CPUs < 1 || node.Memory < 1 || node.BootedAt.IsZero() ||
		node.SlurmdStartedAt.IsZero() || node.Version != c.Info().Version.String() ||
		!slices.Contains(node.Partitions, "all") {
		t.Errorf("something is missing in %+v", node)
	}
}

func testNodesUnchanged(t *testing.T, c cluster) {
	list, err := c.Nodes(t.Context(), 0)
	must(t, err)
	cursor := list.Cursor
	eventually(t, "unchanged nodes", func() error {
		list, err := c.Nodes(t.Context(), cursor)
		if err != nil {
			return err
		}
		if !list.Unchanged {
			cursor = list.Cursor
			return errors.New("they have changed")
		}
		if list.Cursor != cursor || len(list.Nodes) != 0 {
			t.Errorf("unchanged, with %d nodes and the cursor %d for %d", len(list.Nodes), list.Cursor, cursor)
		}
		return nil
	})
	c.setComment(t, "changed")
	list, err = c.Nodes(t.Context(), cursor)
	must(t, err)
	if list.Unchanged || len(list.Nodes) != 2 {
		t.Errorf("after a change, unchanged is %t and there are %d nodes", list.Unchanged, len(list.Nodes))
	}
}

// One request gives all nodes the same comment, and does not change what slurmd brought.
func testInstance(t *testing.T, c cluster) {
	comment := slurm.Owner{Namespace: "slurm", NodeSetName: "gpu", NodeSetUID: "42"}.String()
	must(t, c.UpdateNodes(t.Context(), both, slurm.NodeUpdate{Comment: &comment}))
	list, err := c.Nodes(t.Context(), 0)
	must(t, err)
	for _, node := range append(list.Nodes, c.node(t, "node-0")) {
		if node.Instance != instance || node.Comment != comment {
			t.Errorf("%s has instance ID %q and comment %q", node.Name, node.Instance, node.Comment)
		}
	}
}

func (c cluster) setComment(t *testing.T, comment string) {
	t.Helper()
	must(t, c.UpdateNodes(t.Context(), []string{"node-0"}, slurm.NodeUpdate{Comment: &comment}))
}

// Slurm's time has a resolution of one second. Many changes per second, with a list after each, would reveal changes
// that are missed because they fall into the second of a list.
func testChangeInTheSameSecond(t *testing.T, c cluster) {
	const changes = 200
	var known slurm.Node
	var cursor slurm.Cursor
	for i := range changes {
		comment := fmt.Sprintf("change %d", i)
		c.setComment(t, comment)
		list, err := c.Nodes(t.Context(), cursor)
		must(t, err)
		if !list.Unchanged {
			cursor = list.Cursor
			known = list.Nodes[slices.IndexFunc(list.Nodes, func(n slurm.Node) bool { return n.Name == "node-0" })]
		}
		if known.Comment != comment {
			t.Fatalf("%q is known after %q was set (unchanged: %t)", known.Comment, comment, list.Unchanged)
		}
	}
}

func testMissingNode(t *testing.T, c cluster) {
	_, err := c.Node(t.Context(), "missing")
	if !errors.Is(err, slurm.Rejected) || errors.Is(err, slurm.NotFound) {
		t.Errorf("error is %v", err)
	}
	// An expression is not a name.
	if _, err := c.Node(t.Context(), "node-[0-1]"); err == nil {
		t.Error("an expression was accepted as a name")
	}
}

func testChangeMissingNode(t *testing.T, c cluster) {
	err := c.UpdateNodes(t.Context(), []string{"missing"}, slurm.NodeUpdate{State: slurm.Drain, Reason: "x"})
	if !errors.Is(err, slurm.NotFound) || !slurm.ErrorNumber(err, slurm.NumberInvalidNodeName) {
		t.Errorf("error of the update is %v", err)
	}
	if err := c.DeleteNodes(t.Context(), []string{"missing"}); !errors.Is(err, slurm.NotFound) {
		t.Errorf("error of the deletion is %v", err)
	}
}

// Slurm processes the names in order and stops at the first unknown one.
func testBulkWithMissingNode(t *testing.T, c cluster) {
	for missing, changed := range map[string]bool{"a-missing": false, "z-missing": true} {
		err := c.UpdateNodes(t.Context(), []string{"node-0", missing}, slurm.NodeUpdate{
			State: slurm.Drain, Reason: "partial",
		})
		if !errors.Is(err, slurm.PartialEffect) || !slurm.MayHaveTakenEffect(err) {
			t.Errorf("with %s: error is %v", missing, err)
		}
		if node := c.node(t, "node-0"); node.Drained() != changed {
			t.Errorf("with %s: the other node is %v, %q", missing, node.StateNames(), node.Reason)
		}
		c.undrain(t, "node-0")
	}
}

func testBulkDrain(t *testing.T, c cluster) {
	owner := slurm.Owner{Namespace: "slurm", PodName: "node-0", Node: "worker", NodeSetName: "node", NodeSetUID: "1"}
	must(t, c.UpdateNodes(t.Context(), both, slurm.NodeUpdate{
		State: slurm.Drain, Reason: slurm.OurReason("scale-in"), Comment: new(owner.String()),
	}))
	for _, name := range both {
		node := c.node(t, name)
		if !node.Drained() || node.Busy() || !node.DrainedByUs() || node.ReasonBy != "root" || node.ReasonAt.IsZero() {
			t.Errorf("%s is %v, reason %q by %q at %s", name, node.StateNames(), node.Reason, node.ReasonBy,
				node.ReasonAt)
		}
		if got, err := slurm.ParseOwner(node.Comment); err != nil || got != owner {
			t.Errorf("comment of %s is %q: %v", name, node.Comment, err)
		}
	}
	c.undrain(t, both...)
}

func testImpossibleState(t *testing.T, c cluster) {
	c.waitIdle(t)
	number := slurm.NumberInvalidTransition
	if c.old() {
		number = slurm.NumberInvalidNodeState
	}
	err := c.UpdateNodes(t.Context(), []string{"node-0"}, slurm.NodeUpdate{State: slurm.Resume})
	if !errors.Is(err, slurm.Rejected) || !slurm.ErrorNumber(err, number) {
		t.Errorf("resuming an idle node: %v", err)
	}
	if err := c.UpdateNodes(t.Context(), []string{"node-0"}, slurm.NodeUpdate{State: "NONSENSE"}); !errors.Is(err,
		slurm.Rejected) {
		t.Errorf("nonsense: %v", err)
	}
}

func testReasonAfterUndrain(t *testing.T, c cluster) {
	c.drain(t, "bad memory", "node-1")
	if node := c.node(t, "node-1"); !node.HeldByOthers() {
		t.Errorf("node is %v, %q", node.StateNames(), node.Reason)
	}
	c.undrain(t, "node-1")
	want := ""
	if c.old() {
		want = "bad memory" // 24.11 keeps a stale reason
	}
	if node := c.node(t, "node-1"); node.Reason != want || node.HeldByOthers() || node.DrainedByUs() {
		t.Errorf("reason is %q, want %q", node.Reason, want)
	}
}

func testDrainBusyNode(t *testing.T, c cluster) {
	id := c.submit(t, "node-0", "sleep 4")
	c.drain(t, slurm.OurReason("scale-in"), "node-0")
	// The number of allocated CPUs can lag behind, the state does not.
	if node := c.node(t, "node-0"); !node.Busy() || node.Drained() || !node.DrainedByUs() {
		t.Errorf("node is %v with %d CPUs allocated", node.StateNames(), node.AllocatedCPUs)
	}
	job, err := c.job(t, id)
	must(t, err)
	if !job.Holds() || job.Nodes != "node-0" || job.Start.IsZero() || job.End.Sub(job.Start) != 10*time.Minute ||
		job.User == "" {
		t.Errorf("job is %+v", job)
	}
	if err := c.DeleteNodes(t.Context(), []string{"node-0"}); !errors.Is(err, slurm.Rejected) ||
		!slurm.ErrorNumber(err, slurm.NumberNodesBusy) {
		t.Errorf("deleting a busy node: %v", err)
	}
	// The node must not look drained while the job holds it. The node is read first, so that the job may end in
	// between.
	eventually(t, "node to be drained", func() error {
		node := c.node(t, "node-0")
		job, err := c.job(t, id)
		must(t, err)
		if node.Drained() && job.Holds() {
			t.Fatalf("node is %v while the job is %v", node.StateNames(), job.States)
		}
		if !node.Drained() {
			return fmt.Errorf("it is %v", node.StateNames())
		}
		return nil
	})
	if job, err := c.job(t, id); err != nil || job.Holds() || !slices.Contains(job.States, "COMPLETED") {
		t.Errorf("job is finally %v: %v", job.States, err)
	}
	c.undrain(t, "node-0")
}

// The record of the node may look drained while a suspended job's processes are on it. Only the job shows them.
func testSuspendedJob(t *testing.T, c cluster) {
	id := c.submit(t, "node-0", "sleep 1000")
	c.suspend(t, id)
	c.drain(t, slurm.OurReason("scale-in"), "node-0")
	if node := c.node(t, "node-0"); !node.Drained() {
		t.Errorf("node is %v: it no longer looks drained, so Snapshot.Vacancy could rely on the record",
			node.StateNames())
	}
	if job, err := c.job(t, id); err != nil || !job.Holds() || job.Running() {
		t.Errorf("job is %v: %v", job.States, err)
	}
	c.resume(t, id) // cancelling a suspended job can take a minute
	must(t, c.submitter().Cancel(t.Context(), id))
	eventually(t, "job to end", func() error {
		job, err := c.job(t, id)
		if err == nil && job.Holds() {
			err = fmt.Errorf("it is %v", job.States)
		}
		return err
	})
	c.undrain(t, "node-0")
}

func testReservations(t *testing.T, c cluster) {
	start := time.Now().Add(24 * time.Hour).Truncate(time.Second).UTC()
	want := slurm.Reservation{
		Name: "update", Start: start, End: start.Add(time.Hour), Nodes: "node-[0-1]", Users: []string{"root"},
		Flags: []string{"MAINT", "IGNORE_JOBS"},
	}
	err := c.CreateReservation(t.Context(), want)
	if c.old() {
		if !errors.Is(err, slurm.Unsupported) {
			t.Errorf("24.11 cannot create reservations, but returned %v", err)
		}
		return
	}
	must(t, err)
	list, err := c.Reservations(t.Context())
	must(t, err)
	if len(list) != 1 || list[0].Name != want.Name || !list[0].Start.Equal(start) || !list[0].End.Equal(want.End) ||
		list[0].Nodes != want.Nodes || !slices.Contains(list[0].Flags, "MAINT") ||
		!cmp.Equal(list[0].Users, want.Users) {
		t.Errorf("reservations are %+v", list)
	}
	must(t, c.DeleteReservation(t.Context(), want.Name))
	if err := c.DeleteReservation(t.Context(), want.Name); !errors.Is(err, slurm.NotFound) {
		t.Errorf("deleting a missing reservation: %v", err)
	}
}

func testAuthorization(t *testing.T, c cluster) {
	for name, token := range map[string]string{"garbage": "garbage", "another key": c.token("root") + "x"} {
		client := connect(t, c.target, always(token))
		if _, err := client.Nodes(t.Context(), 0); !errors.Is(err, slurm.Unauthorized) {
			t.Errorf("%s: listing nodes: %v", name, err)
		} else if strings.Contains(err.Error(), token) && token != "garbage" {
			t.Errorf("%s: the error has the token: %v", name, err)
		}
		if _, err := client.Jobs(t.Context(), 0); !errors.Is(err, slurm.Unauthorized) {
			t.Errorf("%s: listing jobs: %v", name, err)
		}
	}
	ordinary := connect(t, c.target, always(c.token("nobody")))
	if list, err := ordinary.Nodes(t.Context(), 0); err != nil || len(list.Nodes) != 2 {
		t.Errorf("an ordinary user sees %d nodes: %v", len(list.Nodes), err)
	}
	err := ordinary.UpdateNodes(t.Context(), both, slurm.NodeUpdate{State: slurm.Drain, Reason: "x"})
	if !errors.Is(err, slurm.Unauthorized) || !slurm.ErrorNumber(err, slurm.NumberInvalidUser) {
		t.Errorf("an ordinary user drains nodes: %v", err)
	}
	if node := c.node(t, "node-0"); node.Draining() {
		t.Error("an ordinary user has drained a node")
	}
}

// slurmrestd queries slurmctld twice for a list of nodes. If the token expires between the two, the error is
// unspecified; the next request returns the reason.
func testExpiredToken(t *testing.T, c cluster) {
	client := connect(t, c.target, always(c.briefToken(t)))
	eventually(t, "token to expire", func() error {
		_, err := client.Nodes(t.Context(), 0)
		switch {
		case errors.Is(err, slurm.Unauthorized):
			return nil
		case err == nil:
			return errors.New("it is still valid")
		case !errors.Is(err, slurm.Failed):
			t.Fatal(err)
		}
		return err
	})
}

func testDiag(t *testing.T, c cluster) {
	before, err := c.Diag(t.Context())
	must(t, err)
	c.setComment(t, "counted")
	after, err := c.Diag(t.Context())
	must(t, err)
	const update = "REQUEST_UPDATE_NODE"
	if after.RPCs[update] != before.RPCs[update]+1 {
		t.Errorf("%d updates were counted before and %d after one", before.RPCs[update], after.RPCs[update])
	}
	if after.CountersSince.IsZero() || after.CountersSince.After(after.Now) ||
		!after.CountersSince.Equal(before.CountersSince) {
		t.Errorf("counters are since %s and %s, now is %s", before.CountersSince, after.CountersSince, after.Now)
	}
}

func testDeleteNodes(t *testing.T, c cluster) {
	c.waitIdle(t)
	must(t, c.DeleteNodes(t.Context(), []string{"node-1"}))
	list, err := c.Nodes(t.Context(), 0)
	must(t, err)
	if len(list.Nodes) != 1 || list.Nodes[0].Name != "node-0" {
		t.Errorf("nodes are %+v", list.Nodes)
	}
	// Slurm protects a node with a running job, but not one with a suspended job: the client has to check before it
	// deletes.
	c.suspend(t, c.submit(t, "node-0", "sleep 1000"))
	err = c.DeleteNodes(t.Context(), []string{"node-0", "node-1"})
	if !errors.Is(err, slurm.PartialEffect) {
		t.Errorf("deleting a missing node with another: %v", err)
	}
	if list, err = c.Nodes(t.Context(), 0); err != nil || len(list.Nodes) != 0 {
		t.Errorf("the other was not deleted: %+v, %v", list.Nodes, err)
	}
}

func testControllerDown(t *testing.T, c cluster) {
	before, err := c.Diag(t.Context())
	must(t, err)
	c.stopController(t)
	for name, request := range map[string]func() error{
		"diag":  func() error { _, err := c.Diag(t.Context()); return err },
		"nodes": func() error { _, err := c.Nodes(t.Context(), 0); return err },
		"jobs":  func() error { _, err := c.Jobs(t.Context(), 0); return err },
		"drain": func() error {
			return c.UpdateNodes(t.Context(), both, slurm.NodeUpdate{State: slurm.Drain, Reason: "x"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := request(); !errors.Is(err, slurm.ControllerDown) || !slurm.MayHaveTakenEffect(err) {
				t.Error(err)
			}
		})
	}
	c.startController(t)
	eventually(t, "slurmctld to answer", func() error { _, err := c.Diag(t.Context()); return err })
	eventually(t, "restart to show", func() error {
		after, err := c.Diag(t.Context())
		if err == nil && !after.CountersSince.After(before.CountersSince) { // zero at first
			err = fmt.Errorf("counters since %s, before %s", after.CountersSince, before.CountersSince)
		}
		return err
	})
}
