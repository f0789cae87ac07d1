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
	chaosSeed = flag.Uint64("chaos-seed", 1, "what TestChaos draws its moments from")
)

// TestChaos breaks one thing after another while users submit jobs and an administrator goes on with the day's work, and holds
// that no job is lost or begun twice, and that all is well again within a minute of the end of each fault.
func TestChaos(t *testing.T) {
	own := ownCluster(t)
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			day := &day{
				nodeSet:  startNodeSet(t, operator, version, allowsSkew),
				machines: own, replicas: wanted,
				random: rand.New(rand.NewPCG(*chaosSeed, 0)),
			}
			day.begins(t, ledger.Stream{Name: "chaos", Partition: "gpu", Lengths: []int{2, 6, 1, 4, 5}})
			day.queues(t, *queued)
			onHostNetwork := day.startsAJobOnTheHostNetwork(t)
			t.Run("the operator is killed", day.theOperatorIsKilled)
			t.Run("the leader is killed", day.theLeaderIsKilled)
			for _, name := range shuffled(day, faults) {
				t.Run(name, func(t *testing.T) { day.suffers(t, name, faults[name]) })
			}
			for _, name := range shuffled(day, disasters) {
				t.Run(name, func(t *testing.T) { day.survives(t, name, disasters[name]) })
			}
			onHostNetwork(t)
			day.ends(t)
		})
	}
}

// shuffled are the names of all faults, in an order that is drawn.
func shuffled[F any](day *day, faults map[string]F) []string {
	names := slices.Sorted(maps.Keys(faults))
	day.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// A day is one of an administrator, with users who submit jobs.
type day struct {
	*nodeSet
	machines *cluster.Cluster
	random   *rand.Rand
	books    *books
	// replicas is how many nodes there are to be, and chores how much of the day's work is done.
	replicas, chores int
	// faults counts what was broken.
	faults int
	// recoveries are how long it took after each fault until all was well.
	recoveries []time.Duration
	// foreign counts the states that others gave nodes, and foreignChanged those that were not what they were in the end.
	foreign, foreignChanged int
}

// begins lets users submit jobs.
func (d *day) begins(t *testing.T, jobs ledger.Stream) {
	t.Helper()
	d.books = d.opensBooks(t, jobs)
	d.isWell(t, time.Minute)
}

// ends stops the stream of jobs, reads the ledger and returns what it says.
func (d *day) ends(t *testing.T) string {
	t.Helper()
	d.books.close(t)
	verdict := d.books.balance(t)
	text := fmt.Sprintf("%s; %d faults, %s; %d of %d foreign states changed", verdict, d.faults, recovery(d.recoveries), d.foreignChanged, d.foreign)
	totals.faults += d.faults
	totals.recoveries = append(totals.recoveries, d.recoveries...)
	t.Logf("%s: %s", d.version, text)
	return text
}

// works does one more of the administrator's chores.
func (d *day) works(t *testing.T) {
	t.Helper()
	chores := []func(){
		func() { d.replicas = wanted + 2; d.scale(t, d.replicas) },
		func() { d.patch(t, "nodeset/gpu", map[string]any{"extraConf": "Weight=" + strconv.Itoa(d.chores+1)}) },
		func() { d.replicas = wanted - 2; d.scale(t, d.replicas) },
		func() { d.replicas = wanted; d.scale(t, d.replicas) },
	}
	chores[d.chores%len(chores)]()
	d.chores++
}

// suffers lets one fault happen in the middle of a chore.
func (d *day) suffers(t *testing.T, name string, fault fault) {
	t.Helper()
	d.works(t)
	mend := fault(t, d)
	d.faults++
	d.moment(t, 8*time.Second)
	if err := mend(); err != nil {
		t.Fatal(err)
	}
	d.recovers(t, name, time.Now())
}

// survives lets a disaster happen while two jobs run, each on a node of its own: one on the spare machine, to which it happens, and one on
// another, which goes on. The stream pauses: what the disaster costs must not be in its books.
func (d *day) survives(t *testing.T, name string, disaster disaster) {
	t.Helper()
	d.command(t, d.books.jobs.Pause()...)
	d.namespace.Eventually(t, 2*time.Minute, "an empty queue", func(ctx context.Context) error {
		out, err := d.queue(ctx)
		if err == nil && out != "" {
			err = fmt.Errorf("there is %q", out)
		}
		return err
	})
	d.replicas = wanted + 2 // so that there are nodes on all machines
	d.scale(t, d.replicas)
	d.isWell(t, time.Minute)
	spares := d.podsOn(t, d.spare)
	first := d.startsAJob(t, "--partition=gpu", "--exclusive", "--nodelist="+spares[0])
	second := d.startsAJob(t, "--partition=gpu", "--exclusive", "--exclude="+strings.Join(spares, ","))
	started := d.savesTheStart(t, second)
	d.replicas = wanted
	d.scale(t, d.replicas)
	afterwards := disaster.strike(t, d, spares[0])
	d.faults++
	d.recovers(t, name, time.Now())
	if err := afterwards(); err != nil {
		t.Fatal(err)
	}
	if err := d.jobIs(t.Context(), second, "JobState=RUNNING", "Restarts=0", started); err != nil {
		t.Error(err)
	}
	d.endsTheJob(t, second)
	if disaster.costsTheFirst {
		d.namespace.Eventually(t, time.Minute, "the lost job in the queue again", func(ctx context.Context) error { return d.jobIs(ctx, first, "Restarts=1") })
		d.command(t, "scancel", first)
	} else {
		d.endsTheJob(t, first)
	}
	d.command(t, d.books.jobs.Resume()...)
}

// queue is the jobs in the queue but those that only fill it, and the one that runs all day.
func (d *day) queue(ctx context.Context) (string, error) {
	return d.login(ctx, "sh", "-c", `squeue --noheader --format="%j %i %P %T %M %R" | grep -v -e "^waiting " -e "^all-day " || true`)
}

// command runs a command where a user would.
func (d *day) command(t *testing.T, command ...string) {
	t.Helper()
	if _, err := d.login(t.Context(), command...); err != nil {
		t.Fatal(err)
	}
}

// recovers waits until all is well after a fault that ended then, and notes how long that took.
func (d *day) recovers(t *testing.T, after string, mended time.Time) {
	t.Helper()
	var course []string
	d.namespace.Eventually(t, 2*time.Minute, "all to be well", func(ctx context.Context) error {
		err := d.ails(ctx)
		if err != nil {
			jobs, _ := d.queue(ctx)
			course = append(course, fmt.Sprintf("%.1f s: %v; jobs %q", time.Since(mended).Seconds(), err, jobs))
		}
		return err
	})
	took := time.Since(mended)
	d.recoveries = append(d.recoveries, took)
	t.Logf("%s: %s: well again after %.1f s", d.version, after, took.Seconds())
	if took > time.Minute {
		t.Errorf("it took %s until all was well again:\n%s", took, strings.Join(course, "\n"))
	}
}

// isWell waits until everything is as the administrator wants it.
func (d *day) isWell(t *testing.T, timeout time.Duration) {
	t.Helper()
	d.namespace.Eventually(t, timeout, "all to be well", d.ails)
}

// ails is what is not as the administrator wants it.
func (d *day) ails(ctx context.Context) error {
	for _, object := range []string{"accounting/slurm", "controller.slinky.slurm.net/slurm", "restapi/slurm", "loginset/login", "token/root", "nodeset/gpu"} {
		if err := d.isReady(ctx, object); err != nil {
			return err
		}
	}
	if err := conditionIs(ctx, d.namespace, "nodeset/gpu", "UpdateInProgress", "False|UpToDate"); err != nil {
		return err
	}
	out, err := d.login(ctx, "sinfo", "--noheader", "--Node", "--partition=gpu", "--responding", "--states=idle,mixed,allocated,completing", "--format=%N %t")
	if nodes := strings.Fields(out); err == nil && len(nodes) != 2*d.replicas {
		err = fmt.Errorf("of %d nodes, these take jobs: %v", d.replicas, nodes)
	}
	return err
}

// isReady reports that an object is not ready, or is not known to be since it was changed.
func (c *slurmCluster) isReady(ctx context.Context, object string) error {
	out, err := c.namespace.Run(ctx, "get", object, "--output", `jsonpath={.metadata.generation} {range .status.conditions[?(@.type=="Ready")]}{.observedGeneration} {.status} {.message}{end}`)
	fields := strings.SplitN(out, " ", 4)
	if err == nil && (len(fields) < 3 || fields[0] != fields[1] || fields[2] != "True") {
		err = fmt.Errorf("%s is not ready: %q", object, out)
	}
	return err
}

// moment lets some time pass: faults do not wait for a good moment.
func (d *day) moment(t *testing.T, longest time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal(context.Cause(t.Context()))
	case <-time.After(time.Duration(d.random.Int64N(int64(longest)))):
	}
}

// signal sends a signal to the processes of a name in a pod.
func (c *slurmCluster) signal(t *testing.T, pod, process, signal string) {
	t.Helper()
	if _, err := c.namespace.Exec(t.Context(), pod, "sh", "-c",
		"for p in /proc/[0-9]*; do read -r c <$p/comm && [ $c = "+process+" ] && kill -"+signal+" ${p#/proc/}; done; true"); err != nil {
		t.Fatal(err)
	}
}
