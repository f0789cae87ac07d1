//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestResize scales a NodeSet from zero to six nodes, to two and to six again while users submit jobs. Jobs submitted
// before the first node wait for it, and none is lost or started twice when nodes are removed.
func TestResize(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			set := &nodeSet{slurmCluster: startServices(t, operator, "resize", version)}
			set.namespace.ApplyTemplates(t, manifests, "nodeset/nodeset.yaml", settings{
				smokeSettings: smokeSettings{Version: version}, Nodes: 0,
			})
			set.configurationIs(t, "True|Applied")
			slurmctld := set.slurmctldStart(t)
			jobs := set.submitJobs(t, "resize", "gpu")
			if version != "24.11" { // it accepts no jobs while a partition has no nodes
				set.jobsWait(t, "resize", 3)
			}
			set.resizeTo(t, 6)
			running := set.startJob(t, "--partition=gpu", "--nodelist=gpu-5", "--mem=64M")
			set.resizeTo(t, 2)
			if names, err := set.pods(t.Context()); err != nil || !slices.Contains(names, "gpu-5") {
				t.Errorf("the node with a job is gone; the pods are %v: %v", names, err)
			}
			set.resizeTo(t, 6)
			set.finishJob(t, running)
			if now := set.slurmctldStart(t); now != slurmctld {
				t.Errorf("slurmctld's container started at %s, and now at %s", slurmctld, now)
			}
			jobs.stop(t)
			jobs.checkAllCompleted(t)
		})
	}
}

// jobsWait waits until at least count jobs with a name are pending.
func (c *slurmCluster) jobsWait(t *testing.T, name string, count int) {
	t.Helper()
	c.namespace.Eventually(t, time.Minute, "pending jobs", func(ctx context.Context) error {
		out, err := c.login(ctx, "squeue", "--noheader", "--name="+name, "--states=PENDING", "--format=%i")
		if jobs := strings.Fields(out); err == nil && len(jobs) < count {
			err = fmt.Errorf("there are %d", len(jobs))
		}
		return err
	})
}

// resizeTo scales the set and waits until it has that many nodes and all of them accept jobs.
func (n *nodeSet) resizeTo(t *testing.T, replicas int) {
	t.Helper()
	started := time.Now()
	n.scale(t, replicas)
	n.namespace.Eventually(t, 3*time.Minute, fmt.Sprintf("%d nodes that accept jobs", replicas),
		func(ctx context.Context) error {
			if err := n.isReady(ctx, "nodeset/gpu"); err != nil {
				return err
			}
			names, err := n.pods(ctx)
			if err == nil && len(names) != replicas {
				err = fmt.Errorf("there are %v", names)
			}
			if err != nil {
				return err
			}
			out, err := n.login(ctx, "sinfo", "--noheader", "--Node", "--partition=gpu", "--responding",
				"--states=idle,mixed,allocated,completing", "--format=%N")
			if nodes := strings.Fields(out); err == nil && !slices.Equal(nodes, names) {
				err = fmt.Errorf("of %v, these accept jobs: %v", names, nodes)
			}
			return err
		})
	t.Logf("%s: %d nodes after %.1f s", n.version, replicas, time.Since(started).Seconds())
}
