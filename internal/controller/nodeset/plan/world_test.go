package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
)

// A world is a NodeSet in a simulated Kubernetes and a simulated Slurm, and an operator that knows of both only what it
// has been told. The stories and the model test run in it: a story says what happens, the model test draws lots.
//
// What is simulated is what can go wrong between the three: views that lag behind, calls that fail or only seem to,
// things that happen between two calls of the operator. What is real is the package plan.
//
// Slurm cannot compare and swap, so something may always happen between the operator's last snapshot of a Slurm node
// and its write. The world assumes this much, and no more:
//
//   - A Slurm node that others open (lift its drain, register it) gets no job before the mirror has read it again or
//     its last snapshot is older than the deletion rule's maxSnapshotAge. See mayStart.
//   - A drain that others set after a snapshot may be overwritten or lifted by a write that is based on that snapshot,
//     while it is younger than maxSnapshotAge. See wroteDrain.
//   - The reason of a drain is at least a second younger when the drain was lifted and set again.
//   - A slurmd that registers at all does so within the NodeSet's registrationTimeout, counted from its own start or
//     slurmctld's, whichever is later. One that slurmctld has forgotten does not register again by itself.
//   - Nothing happens between the last evaluation of the rule and the delete that carries UID and resourceVersion.
type world struct {
	now   time.Time
	count int // of everything that happened, to order what the clock does not
	rand  *rand.Rand
	// calm says that nothing happens between two calls of the operator; depth that something is happening there
	// already.
	calm   bool
	depth  int
	events []event
	// hostNetwork says that slurmds register under the names of their hosts, because they are told none.
	hostNetwork bool

	kube     kubernetes
	slurm    cluster
	mirror   mirror
	operator operator

	trace    *strings.Builder // nil when nobody reads it
	lastPlan string
	wake     time.Time
	broken   []string // the invariants that do not hold
}

const (
	setName        = "gpu"
	maxSnapshotAge = plan.MaxSnapshotAge
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newWorld(set plan.Set) *world {
	w := &world{now: epoch, rand: rand.New(rand.NewPCG(0, 0)), calm: true}
	set.Name, set.UID = setName, "set-1"
	if set.Revision == "" {
		set.Revision = "r1"
	}
	if set.Registration == 0 {
		set.Registration = 2 * time.Minute
	}
	if set.Update.MaxUnavailable == 0 {
		set.Update.MaxUnavailable = 1
	}
	set.Update.Replace = true
	w.kube = kubernetes{
		pods: map[string]*history[object]{}, kubernetesNodes: map[string]*history[plan.KubernetesNode]{},
		kubelets: map[string]*container{}, claims: map[string]string{}, faulty: map[string]fault{},
	}
	w.kube.set.put(&set)
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("m%d", i)
		w.kube.kubernetesNodes[name] = &history[plan.KubernetesNode]{}
		w.kube.kubernetesNodes[name].put(&plan.KubernetesNode{
			SlurmNode: setName + "-" + name, Wanted: set.DaemonSet, Stays: set.DaemonSet, Selected: set.DaemonSet,
		})
	}
	w.slurm = cluster{up: true, since: epoch.Add(-time.Hour), nodes: map[string]*node{}, jobs: map[int64]*job{}}
	w.startOperator()
	return w
}

// tick lets a moment pass, so that no two things happen at once.
func (w *world) tick() time.Time {
	w.count++
	w.now = w.now.Add(time.Millisecond)
	return w.now
}

// pass lets time pass. What must have happened by then happens.
func (w *world) pass(length time.Duration) {
	for end := w.now.Add(length); w.now.Before(end); {
		w.now = w.now.Add(min(end.Sub(w.now), 5*time.Second))
		w.deadlines()
	}
	w.tick()
}

// note writes a line into the trace.
func (w *world) note(format string, args ...any) {
	w.tick()
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%s  %s\n", w.now.Sub(epoch).Truncate(time.Second), fmt.Sprintf(format, args...))
	}
}

// violate notes that an invariant does not hold.
func (w *world) violate(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
	if w.trace != nil {
		fmt.Fprintf(w.trace, "!! %s\n", w.broken[len(w.broken)-1])
	}
}

// chance is true once in n times.
func (w *world) chance(n int) bool { return !w.calm && w.rand.IntN(n) == 0 }

// crash unwinds the operator to where it was called.
type crash struct{}

// yield is a moment between two calls of the operator in which others act, or in which it dies.
func (w *world) yield() {
	w.tick()
	if w.calm || w.depth > 0 {
		return
	}
	w.depth++
	for w.chance(3) {
		w.happen()
	}
	w.depth--
	if w.chance(100) {
		panic(crash{})
	}
}

// survive runs a part of the operator, which may crash in it.
func (w *world) survive(part func()) {
	defer func() {
		if problem := recover(); problem != nil {
			if _, ok := problem.(crash); !ok {
				panic(problem)
			}
			w.depth = 0
			w.startOperator()
			w.note("the operator crashes and starts again")
		}
	}()
	part()
}

// set is what the spec truly is.
func (w *world) set() *plan.Set { return w.kube.set.newest() }

// change changes the spec.
func (w *world) change(edit func(*plan.Set)) {
	next := *w.set()
	edit(&next)
	w.kube.set.put(&next)
}

// fail stops a test with the trace of what happened.
func (w *world) fail(t *testing.T, what string) {
	t.Helper()
	trace := "(not traced)"
	if w.trace != nil {
		trace = w.trace.String()
	}
	t.Fatalf("%s\n%s\n%s", what, strings.Join(w.broken, "\n"), trace)
}

// sorted is the keys of a map in order.
func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
