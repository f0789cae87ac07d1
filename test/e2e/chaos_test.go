//go:build e2e

package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/cluster"
	"github.com/slurm-operator/slurm-operator/test/ledger"
)

var (
	kills     = flag.Int("kills", 6, "how often the operator is killed in TestChaos")
	failovers = flag.Int("failovers", 2, "how often the operator's leader is killed in TestChaos")
	chaosSeed = flag.Uint64("chaos-seed", 1, "seed for the random delays and the order of faults in TestChaos")
)

// TestChaos injects one fault after another while users submit jobs and an administrator scales and updates. No job may
// be lost or started twice, and the cluster must recover within a minute of the end of each fault.
func TestChaos(t *testing.T) {
	own := ownCluster(t)
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			run := newChaosRun(startNodeSet(t, operator, version, allowsSkew), own)
			run.plant(t)
			run.start(t, ledger.Stream{Name: "chaos", Partition: "gpu", Lengths: []int{2, 6, 1, 4, 5}})
			run.fillQueue(t, *queued)
			onHostNetwork := run.startJobOnHostNetwork(t)
			t.Run("the operator is killed", run.killOperatorRepeatedly)
			t.Run("the leader is killed", run.killLeaderRepeatedly)
			for _, name := range shuffled(run, faults) {
				t.Run(name, func(t *testing.T) { run.injectFault(t, name, faults[name]) })
			}
			for _, name := range shuffled(run, disasters) {
				t.Run(name, func(t *testing.T) { run.injectDisaster(t, name, disasters[name]) })
			}
			onHostNetwork(t)
			run.finish(t)
			t.Run("no secrets leak", run.leakedNoSecrets)
		})
	}
}

// shuffled returns the names of all faults in random order.
func shuffled[F any](run *chaosRun, faults map[string]F) []string {
	names := slices.Sorted(maps.Keys(faults))
	run.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// A chaosRun is a NodeSet under load, with the faults injected so far.
type chaosRun struct {
	*nodeSet
	devcluster *cluster.Cluster
	random     *rand.Rand
	jobs       *jobLedger
	// planted are the secrets before the first fault, and logs those of all containers since then.
	planted map[string][]byte
	logs    *cluster.KeptLogs
	// replicas is the desired number of nodes.
	replicas int
	// chores are the administrator's changes, in turn; done counts those so far.
	chores []func(*testing.T)
	done   int
	// resize changes the number of nodes by that many from the number at the start, as far as it may differ.
	resize func(t *testing.T, by int)
	// nodesWork returns an error unless the desired nodes work.
	nodesWork func(context.Context) error
	// limit is how long a recovery may take.
	limit time.Duration
	// faults counts the injected faults.
	faults int
	// recoveries are the recovery times after each fault.
	recoveries []time.Duration
	// foreign counts the states that others set on nodes, and foreignChanged those that were changed afterwards.
	foreign, foreignChanged int
}

// newChaosRun returns a run with a NodeSet of defaultNodes nodes.
func newChaosRun(set *nodeSet, own *cluster.Cluster) *chaosRun {
	r := &chaosRun{
		nodeSet: set, devcluster: own, random: rand.New(rand.NewPCG(*chaosSeed, 0)), replicas: defaultNodes,
		limit: time.Minute,
	}
	r.resize = func(t *testing.T, by int) {
		t.Helper()
		r.replicas = defaultNodes + by
		r.scale(t, r.replicas)
	}
	r.chores = []func(*testing.T){
		func(t *testing.T) { t.Helper(); r.resize(t, 2) },
		r.changeWeight,
		func(t *testing.T) { t.Helper(); r.resize(t, -2) },
		func(t *testing.T) { t.Helper(); r.resize(t, 0) },
	}
	r.nodesWork = r.allNodesAcceptJobs
	return r
}

// changeWeight makes the operator replace all pods.
func (r *chaosRun) changeWeight(t *testing.T) {
	t.Helper()
	r.patch(t, "nodeset/gpu", map[string]any{"extraConf": "Weight=" + strconv.Itoa(r.done+1)})
}

// start starts the stream of jobs.
func (r *chaosRun) start(t *testing.T, stream ledger.Stream) {
	t.Helper()
	r.jobs = r.startLedger(t, stream)
	r.waitUntilHealthy(t, time.Minute)
}

// finish stops the stream of jobs, checks the ledger and returns a summary.
func (r *chaosRun) finish(t *testing.T) string {
	t.Helper()
	r.jobs.stop(t)
	verdict := r.jobs.checkAllCompleted(t)
	text := fmt.Sprintf("%s; %d faults, %s; %d of %d foreign states changed", verdict, r.faults, recovery(r.recoveries),
		r.foreignChanged, r.foreign)
	totals.faults += r.faults
	totals.recoveries = append(totals.recoveries, r.recoveries...)
	t.Logf("%s: %s", r.version, text)
	return text
}

// doChore does the next of the administrator's changes.
func (r *chaosRun) doChore(t *testing.T) {
	t.Helper()
	r.chores[r.done%len(r.chores)](t)
	r.done++
}

// injectFault injects a fault in the middle of a chore.
func (r *chaosRun) injectFault(t *testing.T, name string, fault fault) {
	t.Helper()
	r.doChore(t)
	repair := fault(t, r)
	r.faults++
	r.waitRandomly(t, 8*time.Second)
	if err := repair(); err != nil {
		t.Fatal(err)
	}
	r.waitForRecovery(t, name, time.Now())
}

// injectDisaster injects a disaster while two jobs run, each on its own node: one on the spare Kubernetes node, which
// is hit, and one on another, which must keep running. The stream is paused, because its ledger must not count jobs
// that the disaster kills.
func (r *chaosRun) injectDisaster(t *testing.T, name string, disaster disaster) {
	t.Helper()
	r.command(t, r.jobs.stream.Pause()...)
	r.namespace.Eventually(t, 2*time.Minute, "an empty queue", func(ctx context.Context) error {
		out, err := r.queue(ctx)
		if err == nil && out != "" {
			err = fmt.Errorf("it has %q", out)
		}
		return err
	})
	r.resize(t, 2) // so that every Kubernetes node has pods
	r.waitUntilHealthy(t, time.Minute)
	spares := r.podsOn(t, r.spare)
	first := r.startJob(t, "--partition=gpu", "--exclusive", "--nodelist="+spares[0])
	second := r.startJob(t, "--partition=gpu", "--exclusive", "--exclude="+strings.Join(spares, ","))
	started := r.waitForSavedStart(t, second)
	r.resize(t, 0)
	afterwards := disaster.inject(t, r, spares[0])
	r.faults++
	r.waitForRecovery(t, name, time.Now())
	if err := afterwards(); err != nil {
		t.Fatal(err)
	}
	if err := r.jobIs(t.Context(), second, "JobState=RUNNING", "Restarts=0", started); err != nil {
		t.Error(err)
	}
	r.finishJob(t, second)
	if disaster.losesFirstJob {
		r.namespace.Eventually(t, time.Minute, "the lost job to be requeued",
			func(ctx context.Context) error { return r.jobIs(ctx, first, "Restarts=1") })
		r.command(t, "scancel", first)
	} else {
		r.finishJob(t, first)
	}
	r.command(t, r.jobs.stream.Resume()...)
}

// queue lists the jobs in the queue, except those that only fill it and the one that runs throughout the test.
func (r *chaosRun) queue(ctx context.Context) (string, error) {
	return r.login(ctx, "sh", "-c",
		`squeue --noheader --format="%j %i %P %T %M %R" | grep -v -e "^waiting " -e "^all-day " || true`)
}

// command runs a command in the login pod.
func (r *chaosRun) command(t *testing.T, command ...string) {
	t.Helper()
	if _, err := r.login(t.Context(), command...); err != nil {
		t.Fatal(err)
	}
}

// waitForRecovery waits until the cluster is healthy after a fault that was repaired at the given time, and records how
// long that took.
func (r *chaosRun) waitForRecovery(t *testing.T, after string, repaired time.Time) {
	t.Helper()
	var course []string
	r.namespace.Eventually(t, 2*r.limit, "a healthy cluster", func(ctx context.Context) error {
		err := r.findProblem(ctx)
		if err != nil {
			jobs, _ := r.queue(ctx)
			course = append(course, fmt.Sprintf("%.1f s: %v; jobs %q", time.Since(repaired).Seconds(), err, jobs))
		}
		return err
	})
	took := time.Since(repaired)
	r.recoveries = append(r.recoveries, took)
	t.Logf("%s: %s: recovered after %.1f s", r.version, after, took.Seconds())
	if took > r.limit {
		t.Errorf("recovery took %s:\n%s", took, strings.Join(course, "\n"))
	}
}

// waitUntilHealthy waits until findProblem finds none.
func (r *chaosRun) waitUntilHealthy(t *testing.T, timeout time.Duration) {
	t.Helper()
	r.namespace.Eventually(t, timeout, "a healthy cluster", r.findProblem)
}

// findProblem returns an error unless all objects are ready and the desired nodes work.
func (r *chaosRun) findProblem(ctx context.Context) error {
	for _, object := range []string{"accounting/slurm", "controller.slinky.slurm.net/slurm", "restapi/slurm",
		"loginset/login", "token/root", "nodeset/gpu"} {
		if err := r.isReady(ctx, object); err != nil {
			return err
		}
	}
	if err := conditionIs(ctx, r.namespace, "nodeset/gpu", "UpdateInProgress", "False|UpToDate"); err != nil {
		return err
	}
	return r.nodesWork(ctx)
}

// allNodesAcceptJobs returns an error unless the desired number of nodes accept jobs.
func (r *chaosRun) allNodesAcceptJobs(ctx context.Context) error {
	out, err := r.login(ctx, "sinfo", "--noheader", "--Node", "--partition=gpu", "--responding",
		"--states=idle,mixed,allocated,completing", "--format=%N %t")
	if nodes := strings.Fields(out); err == nil && len(nodes) != 2*r.replicas {
		err = fmt.Errorf("of %d nodes, these accept jobs: %v", r.replicas, nodes)
	}
	return err
}

// isReady returns an error unless an object is ready in its latest generation.
func (c *slurmCluster) isReady(ctx context.Context, object string) error {
	out, err := c.namespace.Run(ctx, "get", object, "--output",
		`jsonpath={.metadata.generation} {range .status.conditions[?(@.type=="Ready")]}{.observedGeneration} {.status} {.message}{end}`)
	fields := strings.SplitN(out, " ", 4)
	if err == nil && (len(fields) < 3 || fields[0] != fields[1] || fields[2] != "True") {
		err = fmt.Errorf("%s is not ready: %q", object, out)
	}
	return err
}

// waitRandomly waits for a random time, so that faults hit at any point of the operator's work.
func (r *chaosRun) waitRandomly(t *testing.T, longest time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal(context.Cause(t.Context()))
	case <-time.After(time.Duration(r.random.Int64N(int64(longest)))):
	}
}

// signal sends a signal to the processes with a name in a pod.
func (c *slurmCluster) signal(t *testing.T, pod, process, signal string) {
	t.Helper()
	if _, err := c.namespace.Exec(t.Context(), pod, "sh", "-c",
		"for p in /proc/[0-9]*; do read -r c <$p/comm && [ $c = "+process+" ] && "+
			"kill -"+signal+" ${p#/proc/}; done; true"); err != nil {
		t.Fatal(err)
	}
}
