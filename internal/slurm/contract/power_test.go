//nolint:thelper // these are the tests of the suite, not helpers
package contract

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

// A powerTarget is a cluster in which node-0 and node-1 have records in slurm.conf with State=CLOUD, and no slurmd.
type powerTarget interface {
	target
	startSlurmd(t *testing.T, node string)
	stopSlurmd(t *testing.T, node string)
}

// fakePower is the fake with such nodes.
type fakePower struct{ standIn }

func (f fakePower) startSlurmd(_ *testing.T, node string) { f.AddNodes(node) }
func (f fakePower) stopSlurmd(_ *testing.T, node string)  { f.StopNodes(node) }

func TestFakePower(t *testing.T) {
	for _, release := range slurmtest.Releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			server := slurmtest.New(t, release)
			server.AddCloudNodes(both...)
			runPower(t, fakePower{standIn{server, release}})
		})
	}
}

// A powerCluster is a cluster whose nodes are powered up and down.
type powerCluster struct {
	cluster
	powerTarget
}

// runPower runs the tests of power saving, each of which ends with both nodes powered down.
func runPower(t *testing.T, target powerTarget) {
	t.Helper()
	c := powerCluster{cluster{target, connect(t, target, always(target.token("root")))}, target}
	c.awaitNodes(t, "records are powered down", isOff, both...)
	for _, test := range []struct {
		name string
		run  func(*testing.T, powerCluster)
	}{
		{"gives up a power-up, whose job returns to the queue", testForcePowerDown},
		{"drains a node that is powered down", testDrainPoweredDown},
		{"powers a node up and down on request", testPowerOnRequest},
		{"runs a job on nodes that it powers up", testPowerUpForJob},
		{"powers a busy node down when its job has ended", testPowerDownBusyNode},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, c) }) {
			return
		}
	}
}

// isOff: slurmctld has powered the node down.
func isOff(node *slurm.Node) bool {
	return node.PoweredOff() && node.Flags.Has(slurm.FlagCloud|slurm.FlagPoweredDown) && !node.Closed() &&
		!node.PoweringUp() && node.State == slurm.StateIdle
}

// isStarting: slurmctld waits for its slurmd.
func isStarting(node *slurm.Node) bool {
	return node.PoweringUp() && !node.PoweredOff() && !node.Responding()
}

// isUp: its slurmd has registered, and it has no job.
func isUp(node *slurm.Node) bool {
	return node.State == slurm.StateIdle && node.Flags == slurm.FlagCloud && node.Responding() && !node.PoweredOff()
}

func (c powerCluster) awaitNodes(t *testing.T, what string, is func(*slurm.Node) bool, names ...string) {
	t.Helper()
	eventually(t, what, func() error {
		list, err := c.Nodes(t.Context(), 0)
		for i := range list.Nodes {
			if node := &list.Nodes[i]; slices.Contains(names, node.Name) && !is(node) {
				return fmt.Errorf("%s is %v: %s", node.Name, node.StateNames(), node.Reason)
			}
		}
		return err
	})
}

func (c powerCluster) awaitJob(t *testing.T, id int64, what string, is func(*slurm.Job) bool) {
	t.Helper()
	eventually(t, what, func() error {
		job, err := c.job(t, id)
		if err == nil && !is(&job) {
			err = fmt.Errorf("it is %v on %q", job.States, job.Nodes)
		}
		return err
	})
}

func (c powerCluster) request(t *testing.T, state slurm.TargetState, names ...string) {
	t.Helper()
	must(t, c.UpdateNodes(t.Context(), names, slurm.NodeUpdate{State: state}))
}

// start submits a job for one node or both.
func (c powerCluster) start(t *testing.T, script string, nodes ...string) int64 {
	t.Helper()
	id, err := c.submitter().Submit(t.Context(), slurmtest.JobRequest{
		Name: "power", Script: "#!/bin/sh\n" + script, Nodes: len(nodes), RequiredNodes: nodes,
		TimeLimit: 10 * time.Minute,
	})
	must(t, err)
	return id
}

func (c powerCluster) cancel(t *testing.T, id int64) {
	t.Helper()
	must(t, c.submitter().Cancel(t.Context(), id))
}

func testForcePowerDown(t *testing.T, c powerCluster) {
	id := c.start(t, "sleep 1", both...)
	c.awaitNodes(t, "its nodes power up", isStarting, both...)
	c.awaitJob(t, id, "it waits for its nodes", func(job *slurm.Job) bool {
		return job.Holds() && !job.Pending() && slices.Contains(job.States, "CONFIGURING") &&
			slices.Contains(job.States, "POWER_UP_NODE") && job.Nodes == "node-[0-1]"
	})
	c.awaitNodes(t, "it shows in their records", (*slurm.Node).Busy, both...)
	c.request(t, slurm.ForcePowerDown, both...)
	c.awaitJob(t, id, "it is back in the queue", func(job *slurm.Job) bool { return job.Pending() && !job.Holds() })
	c.awaitNodes(t, "nodes are out of scheduling", (*slurm.Node).PoweredOff, both...)
	c.cancel(t, id)
	c.awaitNodes(t, "nodes are powered down", isOff, both...)
}

func testDrainPoweredDown(t *testing.T, c powerCluster) {
	c.drain(t, slurm.OurReason("no capacity"), "node-1")
	c.awaitNodes(t, "node is drained", func(node *slurm.Node) bool {
		return node.Drained() && node.DrainedByUs() && node.Flags.Has(slurm.FlagPoweredDown)
	}, "node-1")
	id := c.start(t, "sleep 1", both...)
	c.awaitJob(t, id, "a job waits for the drained node", (*slurm.Job).Pending)
	must(t, c.UpdateNodes(t.Context(), both[1:], slurm.NodeUpdate{State: slurm.Undrain, Reason: slurm.NoReason}))
	c.awaitNodes(t, "its nodes power up", isStarting, both...)
	c.request(t, slurm.ForcePowerDown, both...)
	c.cancel(t, id)
	c.awaitNodes(t, "nodes are powered down", isOff, both...)
}

func testPowerOnRequest(t *testing.T, c powerCluster) {
	c.request(t, slurm.PowerUp, "node-0")
	c.awaitNodes(t, "node powers up", isStarting, "node-0")
	c.startSlurmd(t, "node-0")
	c.awaitNodes(t, "node is up", isUp, "node-0")
	if node := c.node(t, "node-0"); node.LastBusy.IsZero() {
		t.Error("an idle node does not say since when")
	}
	c.request(t, slurm.PowerDown, "node-0")
	c.awaitNodes(t, "node is out of scheduling", (*slurm.Node).PoweredOff, "node-0")
	c.stopSlurmd(t, "node-0")
	c.awaitNodes(t, "node is powered down", isOff, "node-0")
}

func testPowerUpForJob(t *testing.T, c powerCluster) {
	id := c.start(t, "sleep 1", both...)
	c.awaitNodes(t, "its nodes power up", isStarting, both...)
	for _, name := range both {
		c.startSlurmd(t, name)
	}
	c.awaitJob(t, id, "it ends", func(job *slurm.Job) bool { return slices.Contains(job.States, "COMPLETED") })
	c.awaitNodes(t, "nodes are idle", isUp, both...)
	c.request(t, slurm.PowerDown, "node-1")
	c.awaitNodes(t, "node is out of scheduling", (*slurm.Node).PoweredOff, "node-1")
	c.stopSlurmd(t, "node-1")
	c.awaitNodes(t, "node is powered down", isOff, "node-1")
}

// testPowerDownBusyNode begins with node-0 up.
func testPowerDownBusyNode(t *testing.T, c powerCluster) {
	running := c.start(t, "sleep 1000", "node-0")
	c.awaitJob(t, running, "it runs", (*slurm.Job).Running)
	c.request(t, slurm.PowerDown, "node-0")
	waiting := c.start(t, "sleep 1", "node-0")
	c.awaitNodes(t, "node waits for its job", func(node *slurm.Node) bool {
		return node.Flags.Has(slurm.FlagPowerDown) && node.Busy() && !node.PoweredOff()
	}, "node-0")
	c.awaitJob(t, running, "it still runs", (*slurm.Job).Running)
	c.awaitJob(t, waiting, "another one waits", (*slurm.Job).Pending)
	c.cancel(t, waiting)
	c.cancel(t, running)
	c.awaitNodes(t, "node is out of scheduling", (*slurm.Node).PoweredOff, "node-0")
	c.stopSlurmd(t, "node-0")
	c.awaitNodes(t, "node is powered down", isOff, "node-0")
}
