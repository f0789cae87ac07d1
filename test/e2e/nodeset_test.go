//go:build e2e

package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// TestNodeSet checks that compute nodes are added, replaced and removed without losing a job, whatever happens
// meanwhile.
func TestNodeSet(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			set := startNodeSet(t, operator, version)
			t.Run("runs a job on four nodes", set.runsOnAllNodes)
			t.Run("is adopted by a re-created NodeSet", set.isAdopted)
			t.Run("scales in without disturbing jobs", set.scalesInAroundJobs)
			t.Run("is updated under load", set.isUpdatedUnderLoad)
			t.Run("follows kubectl cordon", set.followsCordon)
			t.Run("keeps an admin's drain", set.keepsAdminDrain)
			t.Run("protects jobs from eviction", set.protectsJobsFromEviction)
			t.Run("refuses evictions during a scale-in", set.refusesEvictionsDuringScaleIn)
			t.Run("allows eviction of idle pods", set.allowsEvictionOfIdlePods)
			t.Run("keeps foreign states", set.keepsForeignStates)
			t.Run("restores a lost node record", set.restoresLostRecord)
			t.Run("continues when the operator is killed", set.continuesWhenOperatorIsKilled)
			t.Run("deletes nothing while slurmctld hangs", set.deletesNothingWhileSlurmctldHangs)
			t.Run("replaces a pod whose Kubernetes node is lost", set.replacesLostPod)
			t.Run("waits for jobs when it is deleted", set.waitsForJobsOnDeletion)
		})
	}
}

// nodeSet is the NodeSet gpu of a cluster.
type nodeSet struct {
	*slurmCluster
	// size is the number of its nodes, if it is not defaultNodes.
	size int
	// spare is a Kubernetes node that runs none of the cluster's services.
	spare string
}

// startNodeSet starts a cluster whose services leave one Kubernetes node free, and then its NodeSet.
func startNodeSet(t *testing.T, operator kube.Namespace, version string, extraConf ...string) *nodeSet {
	t.Helper()
	set := startServicesBeside(t, operator, "nodeset", version, extraConf...)
	set.applyAndWait(t)
	set.waitUntilAllIdle(t) // its partition exists some seconds later
	return set
}

// startServicesBeside starts a cluster without nodes whose services leave one Kubernetes node free.
func startServicesBeside(t *testing.T, operator kube.Namespace, name, version string, extraConf ...string) *nodeSet {
	t.Helper()
	nodes, err := operator.Run(t.Context(), "get", "nodes", "--output=jsonpath={.items[*].metadata.name}")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(nodes)
	set := &nodeSet{spare: all[len(all)-1]}
	kubectl := func(verb string) {
		if _, err := operator.Run(t.Context(), verb, set.spare); err != nil {
			t.Fatal(err)
		}
	}
	kubectl("cordon")
	defer kubectl("uncordon")
	set.slurmCluster = startServices(t, operator, name, version, extraConf...)
	return set
}

// defaultNodes is the number of nodes of most sets.
const defaultNodes = 4

// nodes returns the number of nodes unless a test scales the set.
func (n *nodeSet) nodes() int { return cmp.Or(n.size, defaultNodes) }

func (n *nodeSet) applyAndWait(t *testing.T) {
	t.Helper()
	started := time.Now()
	n.namespace.ApplyTemplates(t, manifests, "nodeset/nodeset.yaml", settings{
		smokeSettings: smokeSettings{Version: n.version}, Nodes: defaultNodes,
	})
	becomesReady(t, n.namespace, 3*time.Minute, "nodeset/gpu")
	t.Logf("%s: %d nodes ready %.1f s after they were applied", n.version, defaultNodes, time.Since(started).Seconds())
}

func (n *nodeSet) runsOnAllNodes(t *testing.T) {
	n.namespace.Eventually(t, time.Minute, "a partition with the NodeSet's name",
		func(ctx context.Context) error { return n.sinfoShows(ctx, "gpu idle 4") })
	out, err := n.login(t.Context(), "srun", "--partition=gpu", "--nodes=4", "hostname")
	hosts := strings.Fields(out)
	slices.Sort(hosts)
	if err != nil || !slices.Equal(hosts, []string{"gpu-0", "gpu-1", "gpu-2", "gpu-3"}) {
		t.Errorf("srun on four nodes printed %q: %v", out, err)
	}
	out, err = n.namespace.Run(t.Context(), "get", "pods", "--selector=app.kubernetes.io/name=slurmd",
		"--output=jsonpath={.items[*].spec.nodeName}")
	nodes := strings.Fields(out)
	slices.Sort(nodes)
	if nodes = slices.Compact(nodes); err != nil || len(nodes) < 3 {
		t.Errorf("the pods are on %v: %v", nodes, err)
	}
	out, err = n.login(t.Context(), "scontrol", "show", "node", "gpu-0")
	for _, want := range []string{"CPUTot=2", "RealMemory=378"} {
		if err != nil || !slices.Contains(strings.Fields(out), want) {
			t.Errorf("scontrol does not show %s: %v\n%s", want, err, out)
		}
	}
}

// An administrator deletes the NodeSet with --cascade=orphan and applies it again: pods and job stay the same.
func (n *nodeSet) isAdopted(t *testing.T) {
	job := n.startJob(t, "--nodelist=gpu-1")
	before, owner := n.uids(t), n.uid(t)
	if _, err := n.namespace.Run(t.Context(), "delete", "nodeset/gpu", "--cascade=orphan",
		"--timeout=10m"); err != nil {
		t.Fatal(err)
	}
	n.applyAndWait(t)
	if after := n.uids(t); !maps.Equal(before, after) {
		t.Errorf("the pods were %v and are %v", before, after)
	}
	if n.uid(t) == owner {
		t.Error("the NodeSet was not re-created")
	}
	if err := n.jobIs(t.Context(), job, "JobState=RUNNING", "Restarts=0"); err != nil {
		t.Error(err)
	}
	n.finishJob(t, job)
	n.waitUntilAllIdle(t)
}

// uid returns the NodeSet's UID.
func (n *nodeSet) uid(t *testing.T) string {
	t.Helper()
	out, err := n.namespace.Run(t.Context(), "get", "nodeset/gpu", "--output=jsonpath={.metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (n *nodeSet) scalesInAroundJobs(t *testing.T) {
	first, second := n.startJob(t, "--nodelist=gpu-1"), n.startJob(t, "--nodelist=gpu-2")
	n.scale(t, 0)
	n.hasPods(t, "gpu-1", "gpu-2")
	n.namespace.Eventually(t, time.Minute, "progress in the status", func(ctx context.Context) error {
		return conditionIs(ctx, n.namespace, "nodeset/gpu", "ScaledIn", "False|Draining|waiting for 2 nodes: gpu-")
	})
	n.finishJob(t, first)
	n.hasPods(t, "gpu-2")
	n.finishJob(t, second)
	n.hasPods(t)
	n.scale(t, defaultNodes)
	n.waitUntilAllIdle(t)
}

// While all nodes are replaced, no job of a continuous stream is lost or runs twice.
func (n *nodeSet) isUpdatedUnderLoad(t *testing.T) {
	before := n.uids(t)
	ended := make(chan error, 1)
	go func() {
		_, err := n.login(t.Context(), "sh", "-c",
			`rm -f /tmp/enough; until [ -e /tmp/enough ]; do sbatch --quiet --job-name=stream --partition=gpu --output=/dev/null --wrap="sleep 3"; sleep 0.6; done`)
		ended <- err
	}()
	n.namespace.Eventually(t, time.Minute, "jobs on all nodes", func(ctx context.Context) error {
		out, err := n.login(ctx, "squeue", "--noheader", "--name=stream", "--states=RUNNING", "--format=%N")
		if nodes := strings.Fields(out); err == nil && len(nodes) < defaultNodes {
			err = fmt.Errorf("jobs run on %v", nodes)
		}
		return err
	})
	started := time.Now()
	n.patch(t, "nodeset/gpu", map[string]any{"extraConf": "Weight=7"})
	n.namespace.Eventually(t, 5*time.Minute, "all pods to be replaced", func(ctx context.Context) error {
		for name, uid := range n.uids(t) {
			if before[name] == uid {
				return fmt.Errorf("%s is still the old pod", name)
			}
		}
		return conditionIs(ctx, n.namespace, "nodeset/gpu", "Ready", "True")
	})
	t.Logf("%s: %d nodes replaced under a stream of jobs in %.1f s", n.version, defaultNodes,
		time.Since(started).Seconds())
	if _, err := n.login(t.Context(), "touch", "/tmp/enough"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	n.namespace.Eventually(t, 3*time.Minute, "completion of all jobs", func(ctx context.Context) error {
		out, err := n.login(ctx, "squeue", "--noheader", "--name=stream", "--format=%i")
		if err == nil && strings.TrimSpace(out) != "" {
			err = fmt.Errorf("%d jobs are left", len(strings.Fields(out)))
		}
		return err
	})
	n.checkAllCompletedOnce(t, "stream")
}

// checkAllCompletedOnce checks that all jobs with a name have completed, and that none of them was started twice.
func (n *nodeSet) checkAllCompletedOnce(t *testing.T, name string) {
	t.Helper()
	var jobs int
	n.namespace.Eventually(t, time.Minute, "all jobs completed in accounting", func(ctx context.Context) error {
		out, err := n.login(ctx, "sacct", "--noheader", "--parsable2", "--allocations", "--duplicates", "--name="+name,
			"--format=jobid,state,restarts")
		if err != nil {
			return err
		}
		jobs = 0
		for line := range strings.Lines(out) {
			if jobs++; !strings.HasSuffix(strings.TrimSpace(line), "|COMPLETED|0") {
				return fmt.Errorf("sacct shows %q", line)
			}
		}
		if jobs == 0 {
			return errors.New("sacct shows no jobs")
		}
		return nil
	})
	t.Logf("%s: all %d jobs completed, none was started twice", n.version, jobs)
}

func (n *nodeSet) followsCordon(t *testing.T) {
	node := n.kubernetesNodeOf(t, "gpu-0")
	kubectl := func(verb string) {
		if _, err := n.namespace.Run(t.Context(), verb, node); err != nil {
			t.Fatal(err)
		}
	}
	kubectl("cordon")
	defer kubectl("uncordon")
	started := time.Now()
	n.drainIs(t, "gpu-0", "slurm-operator: Kubernetes node "+node+" is cordoned")
	t.Logf("%s: drained %.1f s after kubectl cordon", n.version, time.Since(started).Seconds())
	kubectl("uncordon")
	n.waitUntilAllIdle(t)
}

func (n *nodeSet) keepsAdminDrain(t *testing.T) {
	if _, err := n.login(t.Context(), "scontrol", "update", "nodename=gpu-2", "state=drain",
		"reason=bad disk"); err != nil {
		t.Fatal(err)
	}
	n.replacesAllPods(t, "Weight=8")
	n.drainIs(t, "gpu-2", "bad disk")
	if _, err := n.login(t.Context(), "scontrol", "update", "nodename=gpu-2", "state=resume"); err != nil {
		t.Fatal(err)
	}
	n.waitUntilAllIdle(t)
}

// replacesAllPods changes the pod template, and waits until all pods are replaced.
func (n *nodeSet) replacesAllPods(t *testing.T, extraConf string) {
	t.Helper()
	before := n.uids(t)
	n.patch(t, "nodeset/gpu", map[string]any{"extraConf": extraConf})
	n.namespace.Eventually(t, 3*time.Minute, "all pods to be replaced", func(ctx context.Context) error {
		for name, uid := range n.uids(t) {
			if before[name] == uid {
				return fmt.Errorf("%s is still the old pod", name)
			}
		}
		return conditionIs(ctx, n.namespace, "nodeset/gpu", "UpdateInProgress", "False|UpToDate")
	})
}

func (n *nodeSet) protectsJobsFromEviction(t *testing.T) {
	job := n.startJob(t, "--nodelist=gpu-3")
	n.namespace.Eventually(t, time.Minute, "a refused eviction", func(ctx context.Context) error {
		_, err := n.namespace.Evict(ctx, "gpu-3", true)
		if err == nil {
			return errors.New("the pod may be evicted")
		}
		if !strings.Contains(err.Error(), "disruption budget") {
			return err
		}
		return nil
	})
	n.finishJob(t, job)
}

func (n *nodeSet) waitsForJobsOnDeletion(t *testing.T) {
	job := n.startJob(t, "--nodelist=gpu-1")
	if _, err := n.namespace.Run(t.Context(), "delete", "nodeset/gpu", "--wait=false"); err != nil {
		t.Fatal(err)
	}
	n.hasPods(t, "gpu-1")
	n.finishJob(t, job)
	n.namespace.Eventually(t, time.Minute, "deletion of the NodeSet", func(ctx context.Context) error {
		out, err := n.namespace.Run(ctx, "get", "nodesets,pods", "--selector=app.kubernetes.io/name=slurmd",
			"--output=name")
		if err == nil && out != "" {
			err = fmt.Errorf("there is %s", out)
		}
		return err
	})
}

func (n *nodeSet) scale(t *testing.T, replicas int) {
	t.Helper()
	if _, err := n.namespace.Run(t.Context(), "scale", "nodeset/gpu",
		"--replicas="+strconv.Itoa(replicas)); err != nil {
		t.Fatal(err)
	}
}

func (n *nodeSet) patch(t *testing.T, object string, spec map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.namespace.Run(t.Context(), "patch", object, "--type=merge", "--patch", string(patch)); err != nil {
		t.Fatal(err)
	}
}

// waitUntilAllIdle waits until all nodes are registered and idle.
func (n *nodeSet) waitUntilAllIdle(t *testing.T) {
	t.Helper()
	n.namespace.Eventually(t, 3*time.Minute, "all nodes of the NodeSet to be idle", func(ctx context.Context) error {
		return errors.Join(conditionIs(ctx, n.namespace, "nodeset/gpu", "Ready", "True"),
			n.sinfoShows(ctx, fmt.Sprintf("gpu idle %d", n.nodes())))
	})
}

func (n *nodeSet) pods(ctx context.Context) ([]string, error) {
	out, err := n.namespace.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/name=slurmd",
		"--output=jsonpath={.items[*].metadata.name}")
	names := strings.Fields(out)
	slices.Sort(names)
	return names, err
}

// hasPods waits until the set has these pods and no others.
func (n *nodeSet) hasPods(t *testing.T, want ...string) {
	t.Helper()
	n.namespace.Eventually(t, 2*time.Minute, fmt.Sprintf("pods %v", want), func(ctx context.Context) error {
		names, err := n.pods(ctx)
		if err == nil && !slices.Equal(names, want) {
			err = fmt.Errorf("there are %v", names)
		}
		return err
	})
}

func (n *nodeSet) uids(t *testing.T) map[string]string {
	t.Helper()
	out, err := n.namespace.Run(t.Context(), "get", "pods", "--selector=app.kubernetes.io/name=slurmd", "--output",
		`jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	for line := range strings.Lines(out) {
		name, uid, _ := strings.Cut(strings.TrimSpace(line), " ")
		uids[name] = uid
	}
	return uids
}

func (n *nodeSet) kubernetesNodeOf(t *testing.T, pod string) string {
	t.Helper()
	out, err := n.namespace.Run(t.Context(), "get", "pod", pod, "--output=jsonpath={.spec.nodeName}")
	if err != nil || out == "" {
		t.Fatalf("pod %s is on %q: %v", pod, out, err)
	}
	return out
}

// drainIs waits until a Slurm node is drained for a reason.
func (n *nodeSet) drainIs(t *testing.T, node, reason string) {
	t.Helper()
	n.namespace.Eventually(t, time.Minute, node+" drained for "+reason, func(ctx context.Context) error {
		out, err := n.login(ctx, "sinfo", "--noheader", "--nodes="+node, "--Format=StateComplete:40,Reason:200")
		if err == nil && (!strings.Contains(out, "drain") || !strings.Contains(out, reason)) {
			err = fmt.Errorf("sinfo shows %q", out)
		}
		return err
	})
}
