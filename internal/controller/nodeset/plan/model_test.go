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
	sequences = flag.Int("sequences", 10_000, "how many sequences the model test tries")
	seed      = flag.Uint64("seed", 0, "the only sequence that the model test tries; 0 for all")
	firstSeed = flag.Uint64("first-seed", 1, "the first sequence that the model test tries")
)

// TestModel lets random things happen to a NodeSet, again and again. After every step the invariants hold, and when
// faults have ended, it converges.
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

// reportFailure makes a failing sequence as short as it can and tells what happens in it.
func reportFailure(t *testing.T, seed uint64) {
	t.Helper()
	all := steps(seed)
	short := shrink(all, func(steps []uint64) bool { return len(try(steps, seed, nil)) > 0 })
	trace := &strings.Builder{}
	problems := try(short, seed, trace)
	t.Fatalf("sequence %d fails, with %d of its %d steps; again with -seed=%d:\n%s\n%s",
		seed, len(short), len(all), seed, strings.Join(problems, "\n"), trace)
}

// steps is a sequence: the seeds of its steps. Each step draws lots of its own, so that others can be left out.
func steps(seed uint64) []uint64 {
	lots := rand.New(rand.NewPCG(seed, 1))
	steps := make([]uint64, 20+lots.IntN(100))
	for i := range steps {
		steps[i] = lots.Uint64()
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

// try runs a sequence and returns what is wrong with it.
func try(steps []uint64, seed uint64, trace *strings.Builder) (problems []string) {
	w := randomWorld(rand.New(rand.NewPCG(seed, 2)))
	w.trace = trace
	for _, step := range steps {
		w.rand = rand.New(rand.NewPCG(step, 3))
		w.survive(func() { w.step() })
		if len(w.broken) > 0 {
			return w.broken
		}
	}
	w.recover()
	if !w.hostNetwork { // what Slurm does not know by its name waits for a person
		w.converge()
	}
	return w.broken
}

func randomWorld(lots *rand.Rand) *world {
	w := newWorld(plan.Set{
		Replicas: lots.IntN(6), DaemonSet: lots.IntN(4) == 0, Prune: plan.PrunePolicy(lots.IntN(3)),
		MinReady: time.Duration(lots.IntN(2)) * 10 * time.Second,
		Update:   plan.Update{MaxUnavailable: 1 + lots.IntN(3)},
	})
	w.hostNetwork = lots.IntN(8) == 0
	w.seeAll()
	if lots.IntN(3) > 0 { // most things happen to a NodeSet that is up
		w.settle()
	}
	w.calm, w.events = false, events
	return w
}

// step lets the operator take a turn, or something happen to it, or a person ask for something.
func (w *world) step() {
	switch lot := w.rand.IntN(20); {
	case lot < 8:
		w.reconcile()
	case lot == 8:
		w.draw(wishes)
	case lot == 9:
		if w.chance(3) {
			panic(crash{})
		}
		w.pass(maxSnapshotAge)
	case lot < 12:
		w.settleKubernetes()
		_ = w.look(true)
	default:
		w.happen()
	}
}

func (w *world) settleKubernetes() {
	if w.chance(2) {
		w.work()
	}
	w.seeAll()
}

// recover ends all faults and all jobs, and leaves of what people asked for what the NodeSet can live with.
func (w *world) recover() {
	w.calm = true
	w.note("all faults end")
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
		if closed && !known.forgotten && w.set().Update.MaxUnavailable <= drained {
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

// converge checks that the NodeSet comes to what the spec asks for, without a person, and without a reconcile that
// nothing has caused.
func (w *world) converge() {
	w.settle()
	if w.set() == nil { // it was being deleted, and that has converged
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
		ours := err == nil && owner.NodeSetUID == w.set().UID && !known.forgotten
		if ours && w.prunable(known) && w.pod(name) == nil {
			w.violate("converge: the record of %s is still there", name)
		}
	}
}

// prunable reports whether the policy wants a record without a pod to be removed.
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

// desired is how many pods the spec asks for.
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

// checkPod checks that a pod is as the spec asks for.
func (w *world) checkPod(pod *object) {
	known := w.slurm.nodes[pod.SlurmNode]
	switch {
	case pod.Revision != w.set().Revision:
		w.violate("converge: %s has an old revision", pod.Name)
	case known == nil || known.forgotten || !known.Responding():
		w.violate("converge: %s is not registered", pod.Name)
	case known.DrainedByUs():
		w.violate("converge: %s is still drained: %s", pod.Name, known.Reason)
	case w.kube.claims[pod.Name] == "":
		w.violate("converge: %s has lost its claim", pod.Name)
	}
}

// settle lets everybody do their work until nothing is left to do. The operator takes a turn only when something that
// it watches has changed, or when its plan has asked for it.
func (w *world) settle() {
	seen := ""
	for range 400 {
		w.work()
		w.settleSlurm()
		w.seeAll()
		_ = w.look(true)
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
	w.violate("converge: it never comes to rest")
}

// settleSlurm lets slurmctld and the slurmds find each other.
func (w *world) settleSlurm() {
	if !w.slurm.up {
		return
	}
	for _, pod := range w.podsThat(w.registering) {
		w.register(pod)
	}
	for _, name := range sorted(w.slurm.nodes) {
		if known := w.slurm.nodes[name]; !known.forgotten && known.Responding() && w.slurmd(name) == nil {
			w.lost(name)
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
