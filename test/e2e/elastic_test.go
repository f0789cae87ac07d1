//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// TestElastic checks that pods follow the jobs: exactly those that a job needs, all of them or none.
func TestElastic(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			set := startElastic(t, operator, version)
			t.Run("runs a job from zero nodes and back", set.runsJobFromZero)
			t.Run("runs jobs of every kind", set.runsJobsOfEveryKind)
			t.Run("powers up only nodes with the feature of a job", set.powersUpOnlyNodesWithFeature)
			t.Run("runs a job for a node that is powering down", set.runsJobDuringPowerDown)
			t.Run("says why nodes are up", set.saysWhyNodesAreUp)
			t.Run("keeps an administrator's drain", set.keepsDrainOfElasticNode)
			t.Run("drains a node that is reclaimed", set.drainsReclaimedNode)
			t.Run("gives up a job that cannot be placed", set.givesUpWhatCannotBePlaced)
			t.Run("runs two wide jobs without a deadlock", set.runsTwoWideJobs)
			t.Run("runs a job when capacity appears", set.runsJobWhenCapacityAppears)
			t.Run("lowers its maximum", set.lowersMaximum)
			t.Run("loses no job of a stream", set.losesNoJobOfStream)
			t.Run("becomes fixed and elastic again under jobs", set.switchesUnderJobs)
			t.Run("closes its nodes when it is deleted", set.closesNodesOnDeletion)
		})
	}
}

// elasticNodes is one more than the Kubernetes nodes of the test cluster, of which each has room for one pod.
func elasticNodes(t *testing.T, operator kube.Namespace) int {
	t.Helper()
	nodes, err := operator.Run(t.Context(), "get", "nodes", "--output=jsonpath={.items[*].metadata.name}")
	if err != nil {
		t.Fatal(err)
	}
	return len(strings.Fields(nodes)) + 1
}

// An elasticSet is an elastic NodeSet gpu.
type elasticSet struct {
	*nodeSet
	// nodes is the number of Slurm nodes; at first, one pod less has room in the Kubernetes cluster.
	nodes int
}

func startElastic(t *testing.T, operator kube.Namespace, version string) *elasticSet {
	t.Helper()
	set := &elasticSet{
		&nodeSet{slurmCluster: startServices(t, operator, "elastic", version)}, elasticNodes(t, operator),
	}
	set.namespace.ApplyTemplates(t, manifests, "nodeset/elastic.yaml", settings{
		smokeSettings: smokeSettings{Version: version}, Nodes: set.nodes,
	})
	set.allPoweredDown(t)
	return set
}

// allPoweredDown waits until all Slurm nodes are powered down, and there are no pods.
func (e *elasticSet) allPoweredDown(t *testing.T) {
	t.Helper()
	e.namespace.Eventually(t, 5*time.Minute, "all nodes to be powered down", func(ctx context.Context) error {
		pods, err := e.pods(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("there are %v", pods)
		}
		return errors.Join(err, e.sinfoShows(ctx, fmt.Sprintf("gpu idle~ %d", e.nodes)))
	})
}

// jobBecomes waits until scontrol shows fields of a job.
func (e *elasticSet) jobBecomes(t *testing.T, job string, shown ...string) {
	t.Helper()
	e.namespace.Eventually(t, 5*time.Minute, fmt.Sprintf("job %s to show %v", job, shown),
		func(ctx context.Context) error { return e.jobIs(ctx, job, shown...) })
}

func (e *elasticSet) runsJobFromZero(t *testing.T) {
	submitted := time.Now()
	job := e.submit(t, "--partition=gpu", fmt.Sprintf("--nodes=%d", e.nodes-1), "--wrap=srun hostname")
	var most []string
	e.namespace.Eventually(t, 5*time.Minute, "completion of the job", func(ctx context.Context) error {
		pods, err := e.pods(ctx)
		if len(pods) > len(most) {
			most = pods
		}
		return errors.Join(err, e.jobIs(ctx, job, "JobState=COMPLETED", "Restarts=0"))
	})
	if len(most) != e.nodes-1 {
		t.Errorf("a job on %d nodes had the pods %v", e.nodes-1, most)
	}
	t.Logf("%s: completed %.1f s after it was submitted", e.version, time.Since(submitted).Seconds())
	e.allPoweredDown(t)
}

func (e *elasticSet) keepsDrainOfElasticNode(t *testing.T) {
	job := e.startElasticJob(t, "--nodelist=gpu-1")
	if _, err := e.login(t.Context(), "scontrol", "update", "nodename=gpu-1", "state=drain",
		"reason=bad disk"); err != nil {
		t.Fatal(err)
	}
	e.finishJob(t, job)
	other := e.submit(t, "--partition=gpu", "--nodelist=gpu-0", "--wrap=true")
	e.jobBecomes(t, other, "JobState=COMPLETED")
	e.hasPods(t, "gpu-1") // the other node was powered down meanwhile
	e.drainIs(t, "gpu-1", "bad disk")
	if _, err := e.login(t.Context(), "scontrol", "update", "nodename=gpu-1", "state=resume"); err != nil {
		t.Fatal(err)
	}
	e.allPoweredDown(t)
}

// startElasticJob starts a job that runs until finishJob is called, and waits until its node is up and it runs.
func (e *elasticSet) startElasticJob(t *testing.T, options ...string) string {
	t.Helper()
	job := e.submit(t, append(options, "--partition=gpu",
		"--wrap=until [ -e /tmp/end-$SLURM_JOB_ID ]; do sleep 0.2; done")...)
	e.namespace.Eventually(t, 5*time.Minute, "a running job", func(ctx context.Context) error {
		out, err := e.login(ctx, "squeue", "--noheader", "--jobs="+job, "--format=%T")
		if err == nil && strings.TrimSpace(out) != "RUNNING" {
			err = fmt.Errorf("it is %s", out)
		}
		return err
	})
	return job
}

// A job for more nodes than Kubernetes has room for leaves no pod behind, and a smaller job behind it runs.
func (e *elasticSet) givesUpWhatCannotBePlaced(t *testing.T) {
	large := e.submit(t, "--partition=gpu", fmt.Sprintf("--nodes=%d", e.nodes), "--wrap=true")
	small := e.submit(t, "--partition=gpu", fmt.Sprintf("--nodes=%d", e.nodes-1), "--wrap=true")
	e.namespace.Eventually(t, 5*time.Minute, "a message about missing capacity", func(ctx context.Context) error {
		return conditionIs(ctx, e.namespace, "nodeset/gpu", "CapacityUnavailable", "True|Unschedulable")
	})
	e.jobBecomes(t, small, "JobState=COMPLETED", "Restarts=0")
	if err := e.jobIs(t.Context(), large, "JobState=COMPLETED"); err == nil {
		t.Error("the job for which there is no room has completed")
	}
	e.namespace.Eventually(t, 3*time.Minute, "no pods for the large job", func(ctx context.Context) error {
		out, err := e.namespace.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/name=slurmd",
			"--field-selector=status.phase=Pending", "--output=name")
		if err == nil && strings.TrimSpace(out) != "" {
			err = fmt.Errorf("there are %s", out)
		}
		return err
	})
	if _, err := e.login(t.Context(), "scancel", large); err != nil {
		t.Fatal(err)
	}
	e.allPoweredDown(t)
}

// Nodes beyond the maximum disappear from Slurm. The others then all have room in the Kubernetes cluster.
func (e *elasticSet) lowersMaximum(t *testing.T) {
	e.nodes--
	e.patch(t, "nodeset/gpu", map[string]any{"elastic": map[string]any{"maxReplicas": e.nodes}})
	e.hasNoRecords(t, fmt.Sprintf("gpu-%d", e.nodes))
	e.allPoweredDown(t)
}

// hasNoRecords waits until slurmctld has no nodes whose names begin with a text.
func (e *elasticSet) hasNoRecords(t *testing.T, begin string) {
	t.Helper()
	e.namespace.Eventually(t, 3*time.Minute, "no record of "+begin, func(ctx context.Context) error {
		out, err := e.login(ctx, "sinfo", "--noheader", "--Node", "--format=%N")
		if err == nil && slices.ContainsFunc(strings.Fields(out), func(name string) bool {
			return strings.HasPrefix(name, begin)
		}) {
			err = fmt.Errorf("there are %s", out)
		}
		return err
	})
}

// While the operator restarts and nodes are powered up and down, no job of a continuous stream is lost or runs twice.
func (e *elasticSet) losesNoJobOfStream(t *testing.T) {
	stream := e.submitJobs(t, "elastic", "gpu")
	wide := e.submit(t, "--partition=gpu", "--nodes=2", "--exclusive", "--wrap=sleep 5")
	e.jobBecomes(t, wide, "JobState=COMPLETED", "Restarts=0")
	e.scaleOperator(t, 0)
	e.scaleOperator(t, 1)
	next := e.submit(t, "--partition=gpu", "--nodes=2", "--wrap=sleep 5")
	e.jobBecomes(t, next, "JobState=COMPLETED", "Restarts=0")
	stream.stop(t)
	stream.checkAllCompleted(t)
	e.allPoweredDown(t)
}

func (e *elasticSet) closesNodesOnDeletion(t *testing.T) {
	if _, err := e.namespace.Run(t.Context(), "delete", "nodeset/gpu", "--timeout=5m"); err != nil {
		t.Fatal(err)
	}
	e.hasNoRecords(t, "gpu-")
}
