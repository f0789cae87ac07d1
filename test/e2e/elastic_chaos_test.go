//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/cluster"
	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
	"github.com/slurm-operator/slurm-operator/test/ledger"
)

// TestElasticChaos injects the faults of TestChaos while jobs power the nodes of an elastic NodeSet up and down, and
// kills slurmctld in each of their power states. No job may be lost or started twice.
func TestElasticChaos(t *testing.T) {
	own := ownCluster(t)
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			run := startElasticChaos(t, operator, own, version)
			run.start(t, ledger.Stream{
				Name: "chaos", Partition: "gpu", Lengths: []int{2, 6, 1, 4, 5}, Interval: 3 * time.Second,
			})
			t.Run("the operator is killed", run.killOperatorRepeatedly)
			t.Run("the leader is killed", run.killLeaderRepeatedly)
			elastic := maps.Clone(faults)
			maps.DeleteFunc(elastic, func(name string, _ fault) bool { return slices.Contains(onlyFixed, name) })
			for _, name := range shuffled(run.chaosRun, elastic) {
				t.Run(name, func(t *testing.T) { run.injectFault(t, name, elastic[name]) })
			}
			run.finish(t)
			run.resize(t, 0)
			run.changeSet(t, map[string]any{"idleTimeout": "20s"})
			t.Run("slurmctld is killed in each power state", run.slurmctldIsKilled)
		})
	}
}

// onlyFixed are the faults that need nodes that are always up: an elastic NodeSet has tests of its own for them.
var onlyFixed = []string{"an administrator marks a Slurm node as failing", "slurmctld loses a node record"}

// An elasticChaos is an elastic NodeSet with as many Slurm nodes as there are Kubernetes nodes, so that there is always
// room for a job: none is requeued for lack of capacity.
type elasticChaos struct {
	*chaosRun
	set *elasticSet
}

func startElasticChaos(t *testing.T, operator kube.Namespace, own *cluster.Cluster, version string) *elasticChaos {
	t.Helper()
	set := &elasticSet{startServicesBeside(t, operator, "elastic", version, allowsSkew), elasticNodes(t, operator) - 1}
	run := &elasticChaos{newChaosRun(set.nodeSet, own), set}
	set.namespace.ApplyTemplates(t, manifests, "nodeset/elastic.yaml", settings{
		smokeSettings: smokeSettings{Version: version}, Nodes: set.nodes,
	})
	set.allPoweredDown(t)
	// A node that starts during a fault must not be given up, and nodes are powered down between two wide jobs.
	run.changeSet(t, map[string]any{"idleTimeout": "10s", "startTimeout": "10m"})
	// A recovery includes the wide jobs of all chores, one after the other.
	run.replicas, run.limit = set.nodes, 4*time.Minute
	run.resize = func(t *testing.T, by int) {
		t.Helper()
		run.replicas = set.nodes + max(min(by, 0), -1) // a wide job needs two
		run.changeSet(t, map[string]any{"maxReplicas": run.replicas})
	}
	run.chores = []func(*testing.T){
		run.submitWide,
		func(t *testing.T) { t.Helper(); run.submitWide(t); run.changeWeight(t) },
		func(t *testing.T) { t.Helper(); run.submitWide(t); run.resize(t, -1) },
		func(t *testing.T) { t.Helper(); run.resize(t, 0); run.submitWide(t) },
	}
	run.nodesWork = run.elasticNodesWork
	return run
}

// changeSet changes fields of spec.elastic.
func (e *elasticChaos) changeSet(t *testing.T, elastic map[string]any) {
	t.Helper()
	e.patch(t, "nodeset/gpu", map[string]any{"elastic": elastic})
}

// submitWide submits a job of the stream's name, so that the ledger counts it, which powers up two nodes.
func (e *elasticChaos) submitWide(t *testing.T) {
	t.Helper()
	e.submit(t, "--job-name=chaos", "--partition=gpu", "--nodes=2", "--exclusive", "--wrap=sleep 3")
}

// unusable matches the state of a node that does not accept jobs, in the words of sinfo.
var unusable = regexp.MustCompile(`down|drain|fail|unk|inval|\*`)

// elasticNodesWork returns an error unless all Slurm nodes exist and are usable, and no wide job is left.
func (e *elasticChaos) elasticNodesWork(ctx context.Context) error {
	out, err := e.login(ctx, "sinfo", "--noheader", "--Node", "--partition=gpu", "--format=%N %t")
	if err != nil {
		return err
	}
	if nodes := strings.Fields(out); len(nodes) != 2*e.replicas || unusable.MatchString(out) {
		return fmt.Errorf("of %d nodes, there are %v", e.replicas, nodes)
	}
	waiting, err := e.login(ctx, "squeue", "--noheader", "--name=chaos", "--format=%i %D %T")
	if err == nil && strings.Contains(waiting, " 2 ") {
		err = fmt.Errorf("a job on two nodes has not ended: %q", waiting)
	}
	return err
}

// slurmctldIsKilled kills slurmctld while a job waits for its node, while its node powers down, while all nodes are
// powered down, and after a record was added. A drain by an administrator stays throughout.
func (e *elasticChaos) slurmctldIsKilled(t *testing.T) {
	e.set.allPoweredDown(t)
	e.scontrol(t, "update", "nodename=gpu-1", "state=drain", "reason=bad disk")
	wait := func(state string) {
		t.Helper()
		e.set.nodeShows(t, "gpu-0", state)
	}
	job := e.submit(t, "--partition=gpu", "--nodelist=gpu-0", "--wrap=sleep 10")
	t.Run("POWERING_UP", func(t *testing.T) {
		wait("POWERING_UP")
		e.waitForSavedStart(t, job)
		e.killSlurmctld(t)
		e.set.jobBecomes(t, job, "JobState=COMPLETED", "Restarts=0")
	})
	t.Run("POWERING_DOWN", func(t *testing.T) {
		wait("POWERING_DOWN")
		e.killSlurmctld(t)
		wait("POWERED_DOWN")
	})
	t.Run("POWERED_DOWN", func(t *testing.T) {
		e.killSlurmctld(t)
		next := e.submit(t, "--partition=gpu", "--nodelist=gpu-0", "--wrap=true")
		e.set.jobBecomes(t, next, "JobState=COMPLETED", "Restarts=0")
		wait("POWERED_DOWN")
	})
	t.Run("a record that was just added", func(t *testing.T) {
		added := fmt.Sprintf("gpu-%d", e.set.nodes)
		e.changeSet(t, map[string]any{"maxReplicas": e.set.nodes + 1})
		e.set.nodeShows(t, added, "POWERED_DOWN")
		e.killSlurmctld(t)
		e.set.nodeShows(t, added, "POWERED_DOWN") // slurmctld may not have saved it, but it is in slurm.conf
	})
	t.Run("an administrator's drain", func(t *testing.T) {
		e.drainIs(t, "gpu-1", "bad disk")
	})
	t.Run("no pods are left", func(t *testing.T) {
		e.namespace.Eventually(t, 3*time.Minute, "no pods", func(ctx context.Context) error {
			pods, err := e.pods(ctx)
			if err == nil && len(pods) > 0 {
				err = errors.New("there are " + strings.Join(pods, ", "))
			}
			return err
		})
	})
}
