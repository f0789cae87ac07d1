// Package contract verifies that the fake slurmtest behaves like the real Slurm: one test suite runs against both.
//
// Without build tags it runs against both releases of slurmtest; with the tag slurm also against real clusters of both
// releases. Other tests must not rely on behaviour that is not in the suite.
package contract

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

// instance is the instance ID that the slurmds of a target bring.
var instance = slurm.Owner{Namespace: "slurm", PodName: "gpu-0", Node: "worker-1"}.String()

// A target is a cluster with the idle nodes node-0 and node-1, which have the same instance ID, from 26.05 on with the
// switches s1 and s2 in the topology topo-switch, and the operations that the suite needs but slurmrestd lacks.
type target interface {
	url() string
	// old reports whether the release is 24.11; otherwise it is 26.05.
	old() bool
	token(user string) string
	// briefToken returns a token for root that expires after about a second.
	briefToken(t *testing.T) string
	suspend(t *testing.T, job int64)
	resume(t *testing.T, job int64)
	stopController(t *testing.T)
	startController(t *testing.T)
}

// A cluster is a target and a client with all permissions.
type cluster struct {
	target
	*rest.Client
}

// submitter submits jobs as root.
func (c cluster) submitter() slurmtest.Submitter {
	return slurmtest.Submitter{URL: c.url(), API: c.Info().API, Token: c.token("root")}
}

func connect(t *testing.T, target target, token rest.TokenSource) *rest.Client {
	t.Helper()
	client, err := rest.New(rest.Options{URL: target.url(), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func always(token string) rest.TokenSource {
	return func(context.Context) (string, error) { return token, nil }
}

// run runs the suite. Only the last two tests depend on the order: they change the cluster permanently.
func run(t *testing.T, target target) {
	t.Helper()
	c := cluster{target, connect(t, target, always(target.token("root")))}
	for _, test := range []struct {
		name string
		run  func(*testing.T, cluster)
	}{
		{"negotiates an API version", testNegotiatesAPI},
		{"lists nodes", testListsNodes},
		{"shows the instance ID that slurmd brought", testInstance},
		{"reports that no node has changed", testNodesUnchanged},
		{"shows a change in the second of the last list", testChangeInTheSameSecond},
		{"does not report a single node as missing", testMissingNode},
		{"refuses to change a missing node", testChangeMissingNode},
		{"changes nodes up to the first missing one", testBulkWithMissingNode},
		{"drains and undrains many nodes at once", testBulkDrain},
		{"refuses an impossible state", testImpossibleState},
		{"keeps or clears the reason of a lifted drain", testReasonAfterUndrain},
		{"clears FAIL with a drain", testForeignFail},
		{"clears our reason", testOurReasonIsCleared},
		{"drains a busy node when its job has ended", testDrainBusyNode},
		{"keeps a job on a drained node when it is suspended", testSuspendedJob},
		{"lists jobs and reports that none has changed", testJobs},
		{"shows the states of array tasks under the numbers of their jobs", testJobStates},
		{"creates and deletes reservations", testReservations},
		{"assigns nodes to a topology unit", testTopology},
		{"refuses bad tokens and ordinary users", testAuthorization},
		{"refuses an expired token", testExpiredToken},
		{"counts requests", testDiag},
		{"is mirrored without missing a change", testMirror},
		{"proves vacancy through a mirror", testVacancy(slurm.MirrorOptions{})},
		{
			"proves vacancy through a mirror that does not list jobs",
			testVacancy(slurm.MirrorOptions{MaxListedJobs: -1}),
		},
		{"deletes nodes", testDeleteNodes},
		{"reports that slurmctld is down", testControllerDown},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, c) }) {
			return // the following tests would fail for the same reason
		}
	}
}

// eventually polls until check succeeds.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: %v", what, err)
		case <-ticker.C:
		}
	}
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// node reads one node.
func (c cluster) node(t *testing.T, name string) slurm.Node {
	t.Helper()
	node, err := c.Node(t.Context(), name)
	must(t, err)
	return node
}

// job finds a job in the list of jobs.
func (c cluster) job(t *testing.T, id int64) (slurm.Job, error) {
	t.Helper()
	list, err := c.Jobs(t.Context(), 0)
	if err != nil {
		return slurm.Job{}, err
	}
	index := slices.IndexFunc(list.Jobs, func(job slurm.Job) bool { return job.ID == id })
	if index < 0 {
		return slurm.Job{}, fmt.Errorf("there is no job %d", id)
	}
	return list.Jobs[index], nil
}

// submit starts a job on a node and waits until it runs.
func (c cluster) submit(t *testing.T, node, script string) int64 {
	t.Helper()
	c.waitIdle(t)
	id, err := c.submitter().Submit(t.Context(), slurmtest.JobRequest{
		Name: "contract", Script: "#!/bin/sh\n" + script, Nodes: 1, RequiredNodes: []string{node},
		TimeLimit: 10 * time.Minute,
	})
	must(t, err)
	eventually(t, "job to run", func() error {
		job, err := c.job(t, id)
		if err == nil && !job.Running() {
			err = fmt.Errorf("it is %v", job.States)
		}
		return err
	})
	return id
}

// drain drains nodes.
func (c cluster) drain(t *testing.T, reason string, names ...string) {
	t.Helper()
	must(t, c.UpdateNodes(t.Context(), names, slurm.NodeUpdate{State: slurm.Drain, Reason: reason}))
}

// undrain lifts drains and waits until the nodes are idle.
func (c cluster) undrain(t *testing.T, names ...string) {
	t.Helper()
	must(t, c.UpdateNodes(t.Context(), names, slurm.NodeUpdate{State: slurm.Undrain}))
	c.waitIdle(t)
}

// waitIdle waits until all nodes accept jobs.
func (c cluster) waitIdle(t *testing.T) {
	t.Helper()
	eventually(t, "nodes to be idle", func() error {
		list, err := c.Nodes(t.Context(), 0)
		for _, node := range list.Nodes {
			if node.State != slurm.StateIdle ||
				node.Flags.HasAny(slurm.FlagDrain|slurm.FlagNotResponding|slurm.FlagCompleting) {
				return fmt.Errorf("%s is %v", node.Name, node.StateNames())
			}
		}
		return err
	})
}
