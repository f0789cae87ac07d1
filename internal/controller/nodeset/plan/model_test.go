package plan_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

var (
	sequences = flag.Int("sequences", 10_000, "how many sequences the model test runs")
	seed      = flag.Uint64("seed", 0, "the only sequence that the model test runs; 0 for all")
	firstSeed = flag.Uint64("first-seed", 1, "the first sequence that the model test runs")
)

// TestModel runs random sequences of events on a NodeSet. It checks the invariants after every step, and that the
// NodeSet converges once all faults are cleared.
func TestModel(t *testing.T) {
	if *seed != 0 {
		if problems := try(steps(*seed), *seed, nil); len(problems) > 0 {
			reportFailure(t, *seed)
		}
		return
	}
	var failed atomic.Uint64
	var next atomic.Uint64
	next.Store(*firstSeed)
	end := *firstSeed + uint64(*sequences)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for failed.Load() == 0 {
				seed := next.Add(1) - 1
				if seed >= end {
					return
				}
				if len(try(steps(seed), seed, nil)) > 0 {
					failed.CompareAndSwap(0, seed)
				}
			}
		})
	}
	workers.Wait()
	if seed := failed.Load(); seed != 0 {
		reportFailure(t, seed)
	}
}

// reportFailure shrinks a failing sequence and reports its trace.
func reportFailure(t *testing.T, seed uint64) {
	t.Helper()
	all := steps(seed)
	short := shrink(all, func(steps []uint64) bool { return len(try(steps, seed, nil)) > 0 })
	trace := &strings.Builder{}
	problems := try(short, seed, trace)
	t.Fatalf("sequence %d fails, with %d of its %d steps; reproduce it with -seed=%d:\n%s\n%s",
		seed, len(short), len(all), seed, strings.Join(problems, "\n"), trace)
}

// steps returns a sequence: a seed for each step, so that a step does not depend on others that are left out.
func steps(seed uint64) []uint64 {
	random := rand.New(rand.NewPCG(seed, 1))
	steps := make([]uint64, 20+random.IntN(100))
	for i := range steps {
		steps[i] = random.Uint64()
	}
	return steps
}

// shrink leaves out steps as long as the rest still fails.
func shrink(steps []uint64, fails func([]uint64) bool) []uint64 {
	for size := len(steps) / 2; size > 0; size /= 2 {
		for start := 0; start+size <= len(steps); {
			if rest := slices.Concat(steps[:start], steps[start+size:]); fails(rest) {
				steps = rest
			} else {
				start += size
			}
		}
	}
	return steps
}

// try runs a sequence and returns the violated invariants.
func try(steps []uint64, seed uint64, trace *strings.Builder) (problems []string) {
	w := randomWorld(rand.New(rand.NewPCG(seed, 2)))
	w.trace = trace
	for _, step := range steps {
		w.rand = rand.New(rand.NewPCG(step, 3))
		w.restartOnCrash(func() { w.step() })
		if len(w.broken) > 0 {
			return w.broken
		}
	}
	w.recover()
	if !w.hostNetwork { // unidentified slurmds wait for a user
		w.converge()
	}
	return w.broken
}

func randomWorld(random *rand.Rand) *world {
	w := newWorld(plan.Set{
		Replicas: random.IntN(6), DaemonSet: random.IntN(4) == 0, Prune: plan.PrunePolicy(random.IntN(3)),
		MinReady: time.Duration(random.IntN(2)) * 10 * time.Second,
		Update:   plan.Update{MaxUnavailable: 1 + random.IntN(3)},
	})
	hostNetwork := random.IntN(8) == 0
	w.syncCache()
	if random.IntN(3) > 0 { // usually the NodeSet is up before the first event
		w.settle()
	}
	w.hostNetwork = hostNetwork // later pods find records of earlier ones, which had their names
	w.calm, w.events = false, events
	return w
}

// step runs a reconcile, a request of a user, a poll or an event.
func (w *world) step() {
	switch n := w.rand.IntN(20); {
	case n < 8:
		w.reconcile()
	case n == 8:
		w.draw(requests)
	case n == 9:
		if w.oneIn(3) {
			panic(crash{})
		}
		w.pass(maxSnapshotAge)
	case n < 12:
		w.settleKubernetes()
		_ = w.poll(true)
	default:
		w.randomEvent()
	}
}

func (w *world) settleKubernetes() {
	if w.oneIn(2) {
		w.runKubernetes()
	}
	w.syncCache()
}

// recover clears all faults, ends all jobs, and reverts requests of users that would prevent convergence.
func (w *world) recover() {
	w.calm = true
	w.note("all faults are cleared")
	w.endOutages()
	w.recreate()
	clear(w.kube.faulty)
	w.change(func(set *plan.Set) { set.Update.Replace = true })
	for id := range w.slurm.jobs {
		delete(w.slurm.jobs, id)
	}
	for _, name := range sorted(w.kube.kubernetesNodes) {
		w.cordon(name, false)
	}
	for _, pod := range w.podsThat(notTerminating) {
		w.cordonPod(pod.Name, false)
	}
	drained := 1
	for _, name := range sorted(w.slurm.nodes) {
		known := w.slurm.nodes[name]
		closed := known.Flags.HasAny(slurm.FlagDrain|slurm.FlagFail) && !known.DrainedByUs()
		if closed && !known.recordLost && w.set().Update.MaxUnavailable <= drained {
			w.undrain(name)
		} else if closed {
			drained++
		}
	}
	for _, pod := range w.podsThat(
		func(pod *object, box *container) bool { return w.kube.faulty[pod.Revision] != works || box.ended }) {
		w.report(pod)
	}
}

// converge checks that the NodeSet reaches the state that the spec asks for, without a user, and with reconciles that
// are caused by a watch or a requeue only.
func (w *world) converge() {
	w.settle()
	if w.set() == nil { // its deletion has converged
		w.recreate()
		w.settle()
	}
	if set := w.set(); set.Deleting {
		w.violate("converge: the NodeSet is still being deleted")
		return
	}
	pods := w.podsThat(func(*object, *container) bool { return true })
	if want := w.desired(); len(pods) != want {
		w.violate("converge: %d pods instead of %d", len(pods), want)
	}
	for _, pod := range pods {
		w.checkPod(pod)
	}
	for _, name := range sorted(w.slurm.nodes) {
		known := w.slurm.nodes[name]
		owner, err := slurm.ParseOwner(known.Comment)
		ours := err == nil && owner.NodeSetUID == w.set().UID && !known.recordLost
		if ours && w.prunable(known) && w.pod(name) == nil {
			w.violate("converge: the record of %s still exists", name)
		}
	}
}

// prunable reports whether the policy deletes a record if it has no pod.
func (w *world) prunable(known *node) bool {
	switch w.set().Prune {
	case plan.PruneAll:
		return !known.Flags.HasAny(slurm.FlagDrain|slurm.FlagFail) || known.DrainedByUs()
	case plan.PruneScaledIn:
		return known.DrainedByUs() && known.Reason == slurm.OurReason("scale-in")
	case plan.PruneNever:
	}
	return false
}

// desired returns how many pods the spec asks for.
func (w *world) desired() int {
	if !w.set().DaemonSet {
		return w.set().Replicas
	}
	wanted := 0
	for name, kubernetesNode := range w.kube.kubernetesNodes {
		is := kubernetesNode.newest()
		if is == nil || !is.Wanted && is.Stays {
			if w.pod(setName+"-"+name) != nil { // it may stay
				wanted++
			}
		} else if is.Wanted {
			wanted++
		}
	}
	return wanted
}

// checkPod checks that a pod is in the state that the spec asks for.
func (w *world) checkPod(pod *object) {
	known := w.slurm.nodes[pod.SlurmNode]
	switch {
	case pod.Revision != w.set().Revision:
		w.violate("converge: %s has an old revision", pod.Name)
	case known == nil || known.recordLost || !known.Responding():
		w.violate("converge: %s is not registered", pod.Name)
	case known.DrainedByUs():
		w.violate("converge: %s is still drained: %s", pod.Name, known.Reason)
	case w.kube.pvcs[pod.Name] == "":
		w.violate("converge: %s has lost its PVC", pod.Name)
	case pod.Mark != plan.Unmarked:
		w.violate("converge: %s still has a cordon mark", pod.Name)
	}
}

// settle runs Kubernetes, Slurm and the operator until nothing is left to do. The operator reconciles only when
// something that it watches has changed, or when its plan has requested it.
func (w *world) settle() {
	seen := ""
	for range 400 {
		w.runKubernetes()
		w.settleSlurm()
		w.syncCache()
		_ = w.poll(true)
		due := !w.wake.IsZero() && !w.wake.After(w.now)
		switch now := w.fingerprint(); {
		case now != seen || due:
			seen = now
			w.reconcile()
		case w.wake.IsZero():
			return
		default:
			w.pass(w.wake.Sub(w.now))
		}
	}
	w.violate("converge: the NodeSet reaches no steady state")
}

// settleSlurm registers slurmds, and sets the Slurm nodes without one to DOWN.
func (w *world) settleSlurm() {
	if !w.slurm.up {
		return
	}
	for _, pod := range w.podsThat(w.registering) {
		w.register(pod)
	}
	for _, name := range sorted(w.slurm.nodes) {
		if known := w.slurm.nodes[name]; !known.recordLost && known.Responding() && w.slurmd(name) == nil {
			w.markDown(name)
		}
	}
}

// fingerprint changes with everything that the operator watches.
func (w *world) fingerprint() string {
	var all strings.Builder
	fmt.Fprint(&all, len(w.kube.set.versions), w.mirror.answers)
	for _, name := range w.kube.names {
		fmt.Fprint(&all, len(w.kube.pods[name].versions), " ")
	}
	for _, name := range sorted(w.kube.kubernetesNodes) {
		fmt.Fprint(&all, len(w.kube.kubernetesNodes[name].versions), " ")
	}
	for _, record := range w.records() {
		fmt.Fprint(&all, record.Name, record.StateNames(), record.Reason, " ")
	}
	fmt.Fprint(&all, len(w.slurm.jobs))
	return all.String()
}
