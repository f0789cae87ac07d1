//go:build e2e

package e2e_test

import (
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

// TestNodeSet proves that compute nodes come and go without costing a job, whatever happens meanwhile.
func TestNodeSet(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			set := startNodeSet(t, operator, version)
			t.Run("runs a job on four nodes", set.runsOnAllNodes)
			t.Run("is taken over by a NodeSet made anew", set.isTakenOver)
			t.Run("scales in around jobs", set.scalesInAroundJobs)
			t.Run("is updated under a stream of jobs", set.isUpdatedUnderAStreamOfJobs)
			t.Run("follows kubectl cordon", set.followsCordon)
			t.Run("leaves an admin's drain alone", set.leavesAnAdminsDrainAlone)
			t.Run("protects jobs from eviction", set.protectsJobsFromEviction)
			t.Run("refuses evictions during a scale-in", set.refusesEvictionsDuringAScaleIn)
			t.Run("lets idle pods be evicted", set.letsIdlePodsBeEvicted)
			t.Run("leaves foreign states alone", set.leavesForeignStatesAlone)
			t.Run("brings back a lost record", set.bringsBackALostRecord)
			t.Run("goes on when the operator is killed", set.goesOnWhenTheOperatorIsKilled)
			t.Run("deletes nothing while slurmctld is silent", set.deletesNothingWhileSlurmctldIsSilent)
			t.Run("replaces a pod whose machine is lost", set.replacesALostPod)
			t.Run("waits for jobs when it is deleted", set.waitsWhenItIsDeleted)
		})
	}
}

// nodeSet is the NodeSet gpu of a cluster.
type nodeSet struct {
	*slurmCluster
	// spare is a machine that none of the cluster's services is on.
	spare string
}

// startNodeSet starts a cluster whose services leave a machine alone, and then its nodes.
func startNodeSet(t *testing.T, operator kube.Namespace, version string, extraConf ...string) *nodeSet {
	t.Helper()
	machines, err := operator.Run(t.Context(), "get", "nodes", "--output=jsonpath={.items[*].metadata.name}")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(machines)
	set := &nodeSet{spare: all[len(all)-1]}
	kubectl := func(verb string) {
		if _, err := operator.Run(t.Context(), verb, set.spare); err != nil {
			t.Fatal(err)
		}
	}
	kubectl("cordon")
	defer kubectl("uncordon")
	set.slurmCluster = startServices(t, operator, "nodeset", version, extraConf...)
	kubectl("uncordon")
	set.comesUp(t)
	set.isWhole(t) // its partition is live some seconds later
	return set
}

// wanted is how many nodes it has while nothing else is said.
const wanted = 4

func (n *nodeSet) comesUp(t *testing.T) {
	t.Helper()
	started := time.Now()
	n.namespace.ApplyTemplates(t, manifests, "nodeset/nodeset.yaml", settings{smokeSettings: smokeSettings{Version: n.version}, Nodes: wanted})
	becomesReady(t, n.namespace, 3*time.Minute, "nodeset/gpu")
	t.Logf("%s: %d nodes ready %.1f s after they were applied", n.version, wanted, time.Since(started).Seconds())
}

func (n *nodeSet) runsOnAllNodes(t *testing.T) {
	n.namespace.Eventually(t, time.Minute, "a partition of the NodeSet's name", func(ctx context.Context) error { return n.sinfoShows(ctx, "gpu idle 4") })
	out, err := n.login(t.Context(), "srun", "--partition=gpu", "--nodes=4", "hostname")
	hosts := strings.Fields(out)
	slices.Sort(hosts)
	if err != nil || !slices.Equal(hosts, []string{"gpu-0", "gpu-1", "gpu-2", "gpu-3"}) {
		t.Errorf("srun on four nodes printed %q: %v", out, err)
	}
	out, err = n.namespace.Run(t.Context(), "get", "pods", "--selector=app.kubernetes.io/name=slurmd", "--output=jsonpath={.items[*].spec.nodeName}")
	machines := strings.Fields(out)
	slices.Sort(machines)
	if machines = slices.Compact(machines); err != nil || len(machines) < 3 {
		t.Errorf("the pods are on %v: %v", machines, err)
	}
	out, err = n.login(t.Context(), "scontrol", "show", "node", "gpu-0")
	for _, want := range []string{"CPUTot=2", "RealMemory=512"} {
		if err != nil || !slices.Contains(strings.Fields(out), want) {
			t.Errorf("scontrol does not show %s: %v\n%s", want, err, out)
		}
	}
}

// An administrator deletes the NodeSet alone and applies it again: the pods and the job are what they were.
func (n *nodeSet) isTakenOver(t *testing.T) {
	job := n.startsAJob(t, "--nodelist=gpu-1")
	before, owner := n.uids(t), n.uid(t)
	if _, err := n.namespace.Run(t.Context(), "delete", "nodeset/gpu", "--cascade=orphan", "--timeout=10m"); err != nil {
		t.Fatal(err)
	}
	n.comesUp(t)
	if after := n.uids(t); !maps.Equal(before, after) {
		t.Errorf("the pods were %v and are %v", before, after)
	}
	if n.uid(t) == owner {
		t.Error("the NodeSet is the old one")
	}
	if err := n.jobIs(t.Context(), job, "JobState=RUNNING", "Restarts=0"); err != nil {
		t.Error(err)
	}
	n.endsTheJob(t, job)
	n.isWhole(t)
}

// uid is the NodeSet's own.
func (n *nodeSet) uid(t *testing.T) string {
	t.Helper()
	out, err := n.namespace.Run(t.Context(), "get", "nodeset/gpu", "--output=jsonpath={.metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (n *nodeSet) scalesInAroundJobs(t *testing.T) {
	first, second := n.startsAJob(t, "--nodelist=gpu-1"), n.startsAJob(t, "--nodelist=gpu-2")
	n.scale(t, 0)
	n.hasPods(t, "gpu-1", "gpu-2")
	n.namespace.Eventually(t, time.Minute, "progress in the status", func(ctx context.Context) error {
		return conditionIs(ctx, n.namespace, "nodeset/gpu", "ScaledIn", "False|Draining|waiting for 2 nodes: gpu-")
	})
	n.endsTheJob(t, first)
	n.hasPods(t, "gpu-2")
	n.endsTheJob(t, second)
	n.hasPods(t)
	n.scale(t, wanted)
	n.isWhole(t)
}

// A user who submits one job after another loses none, and none runs twice, while all nodes are replaced.
func (n *nodeSet) isUpdatedUnderAStreamOfJobs(t *testing.T) {
	before := n.uids(t)
	ended := make(chan error, 1)
	go func() {
		_, err := n.login(t.Context(), "sh", "-c",
			`rm -f /tmp/enough; until [ -e /tmp/enough ]; do sbatch --quiet --job-name=stream --partition=gpu --output=/dev/null --wrap="sleep 3"; sleep 0.6; done`)
		ended <- err
	}()
	n.namespace.Eventually(t, time.Minute, "jobs on all nodes", func(ctx context.Context) error {
		out, err := n.login(ctx, "squeue", "--noheader", "--name=stream", "--states=RUNNING", "--format=%N")
		if nodes := strings.Fields(out); err == nil && len(nodes) < wanted {
			err = fmt.Errorf("jobs run on %v", nodes)
		}
		return err
	})
	started := time.Now()
	n.patch(t, "nodeset/gpu", map[string]any{"extraConf": "Weight=7"})
	n.namespace.Eventually(t, 5*time.Minute, "all pods to be new", func(ctx context.Context) error {
		for name, uid := range n.uids(t) {
			if before[name] == uid {
				return fmt.Errorf("%s is still the old one", name)
			}
		}
		return conditionIs(ctx, n.namespace, "nodeset/gpu", "Ready", "True")
	})
	t.Logf("%s: %d nodes replaced under a stream of jobs in %.1f s", n.version, wanted, time.Since(started).Seconds())
	if _, err := n.login(t.Context(), "touch", "/tmp/enough"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	n.namespace.Eventually(t, 3*time.Minute, "the end of all jobs", func(ctx context.Context) error {
		out, err := n.login(ctx, "squeue", "--noheader", "--name=stream", "--format=%i")
		if err == nil && strings.TrimSpace(out) != "" {
			err = fmt.Errorf("%d jobs are left", len(strings.Fields(out)))
		}
		return err
	})
	n.allCompletedOnce(t, "stream")
}

// allCompletedOnce holds that all jobs of a name have completed, and that none of them was begun twice.
func (n *nodeSet) allCompletedOnce(t *testing.T, name string) {
	t.Helper()
	var jobs int
	n.namespace.Eventually(t, time.Minute, "all jobs completed in accounting", func(ctx context.Context) error {
		out, err := n.login(ctx, "sacct", "--noheader", "--parsable2", "--allocations", "--duplicates", "--name="+name, "--format=jobid,state,restarts")
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
	t.Logf("%s: all %d jobs completed, none was begun twice", n.version, jobs)
}

func (n *nodeSet) followsCordon(t *testing.T) {
	machine := n.machineOf(t, "gpu-0")
	kubectl := func(verb string) {
		if _, err := n.namespace.Run(t.Context(), verb, machine); err != nil {
			t.Fatal(err)
		}
	}
	kubectl("cordon")
	defer kubectl("uncordon")
	started := time.Now()
	n.drainIs(t, "gpu-0", "slurm-operator: Kubernetes node "+machine+" is cordoned")
	t.Logf("%s: drained %.1f s after kubectl cordon", n.version, time.Since(started).Seconds())
	kubectl("uncordon")
	n.isWhole(t)
}

func (n *nodeSet) leavesAnAdminsDrainAlone(t *testing.T) {
	if _, err := n.login(t.Context(), "scontrol", "update", "nodename=gpu-2", "state=drain", "reason=bad disk"); err != nil {
		t.Fatal(err)
	}
	n.replacesAllPods(t, "Weight=8")
	n.drainIs(t, "gpu-2", "bad disk")
	if _, err := n.login(t.Context(), "scontrol", "update", "nodename=gpu-2", "state=resume"); err != nil {
		t.Fatal(err)
	}
	n.isWhole(t)
}

// replacesAllPods changes what pods are made from, and waits until all of them are new.
func (n *nodeSet) replacesAllPods(t *testing.T, extraConf string) {
	t.Helper()
	before := n.uids(t)
	n.patch(t, "nodeset/gpu", map[string]any{"extraConf": extraConf})
	n.namespace.Eventually(t, 3*time.Minute, "all pods to be new", func(ctx context.Context) error {
		for name, uid := range n.uids(t) {
			if before[name] == uid {
				return fmt.Errorf("%s is still the old one", name)
			}
		}
		return conditionIs(ctx, n.namespace, "nodeset/gpu", "UpdateInProgress", "False|UpToDate")
	})
}

func (n *nodeSet) protectsJobsFromEviction(t *testing.T) {
	job := n.startsAJob(t, "--nodelist=gpu-3")
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
	n.endsTheJob(t, job)
}

func (n *nodeSet) waitsWhenItIsDeleted(t *testing.T) {
	job := n.startsAJob(t, "--nodelist=gpu-1")
	if _, err := n.namespace.Run(t.Context(), "delete", "nodeset/gpu", "--wait=false"); err != nil {
		t.Fatal(err)
	}
	n.hasPods(t, "gpu-1")
	n.endsTheJob(t, job)
	n.namespace.Eventually(t, time.Minute, "the NodeSet's end", func(ctx context.Context) error {
		out, err := n.namespace.Run(ctx, "get", "nodesets,pods", "--selector=app.kubernetes.io/name=slurmd", "--output=name")
		if err == nil && out != "" {
			err = fmt.Errorf("there is %s", out)
		}
		return err
	})
}

func (n *nodeSet) scale(t *testing.T, replicas int) {
	t.Helper()
	if _, err := n.namespace.Run(t.Context(), "scale", "nodeset/gpu", "--replicas="+strconv.Itoa(replicas)); err != nil {
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

// isWhole waits until all nodes are there and take jobs.
func (n *nodeSet) isWhole(t *testing.T) {
	t.Helper()
	n.namespace.Eventually(t, 3*time.Minute, "a NodeSet that is whole", func(ctx context.Context) error {
		return errors.Join(conditionIs(ctx, n.namespace, "nodeset/gpu", "Ready", "True"), n.sinfoShows(ctx, "gpu idle 4"))
	})
}

func (n *nodeSet) pods(ctx context.Context) ([]string, error) {
	out, err := n.namespace.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/name=slurmd", "--output=jsonpath={.items[*].metadata.name}")
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
	out, err := n.namespace.Run(t.Context(), "get", "pods", "--selector=app.kubernetes.io/name=slurmd", "--output", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}`)
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

func (n *nodeSet) machineOf(t *testing.T, pod string) string {
	t.Helper()
	out, err := n.namespace.Run(t.Context(), "get", "pod", pod, "--output=jsonpath={.spec.nodeName}")
	if err != nil || out == "" {
		t.Fatalf("pod %s is on %q: %v", pod, out, err)
	}
	return out
}

// drainIs waits until a node is drained for a reason.
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
