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

// A world is a NodeSet in a simulated Kubernetes and a simulated Slurm, with an operator that reads both through its
// caches only. The scenarios and the model test run in it: a scenario is a fixed sequence of events, the model test
// draws them at random.
//
// The simulation covers what can go wrong between the three: stale caches, calls that fail or whose answer is lost,
// events between two calls of the operator. Package plan is the real one.
//
// Slurm has no compare-and-swap, so something may always happen between the operator's last snapshot of a Slurm node
// and its write. The world assumes this much, and no more:
//
//   - A Slurm node that others open (lift its drain, register it) gets no job before the mirror has read it again or
//     its last snapshot is older than the deletion rule's maxSnapshotAge, or than maxAbsenceAge if the snapshot shows
//     it as DOWN without a drain, or does not have it and the API server does not have the start of its slurmd. See
//     mayStart.
//   - A drain that others set after a snapshot may be overwritten or lifted by a write that is based on that snapshot,
//     while it is younger than maxSnapshotAge. See wroteDrain.
//   - The reason of a drain is at least a second younger when the drain was lifted and set again.
//   - A slurmd that registers at all does so within the NodeSet's registrationTimeout, counted from its own start or
//     slurmctld's, whichever is later. If slurmctld loses its record, it does not register again by itself.
//   - Nothing happens between the last evaluation of the rule and the delete that carries UID and resourceVersion.
type world struct {
	now   time.Time
	count int // of all steps: a logical clock
	rand  *rand.Rand
	// calm disables events between two calls of the operator; depth is not zero while such an event is handled.
	calm   bool
	depth  int
	events []event
	// hostNetwork says that slurmds register under their host names, because they are started without a name.
	hostNetwork bool

	kube     kubernetes
	slurm    cluster
	mirror   mirror
	operator operator

	trace    *strings.Builder // nil if it is not needed
	lastPlan string
	wake     time.Time
	plans    int      // made so far
	broken   []string // violated invariants
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
		kubelets: map[string]*container{}, pvcs: map[string]string{}, faulty: map[string]fault{},
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

// tick advances the clocks, so that no two steps have the same time.
func (w *world) tick() time.Time {
	w.count++
	w.now = w.now.Add(time.Millisecond)
	return w.now
}

// pass advances the clock by a duration, and enforces deadlines on the way.
func (w *world) pass(length time.Duration) {
	for end := w.now.Add(length); w.now.Before(end); {
		w.now = w.now.Add(min(end.Sub(w.now), 5*time.Second))
		w.enforceDeadlines()
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

// violate records a violated invariant.
func (w *world) violate(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
	if w.trace != nil {
		fmt.Fprintf(w.trace, "!! %s\n", w.broken[len(w.broken)-1])
	}
}

// oneIn returns true once in n times, at random.
func (w *world) oneIn(n int) bool { return !w.calm && w.rand.IntN(n) == 0 }

// A crash is the panic value of a simulated crash of the operator.
type crash struct{}

// yield lets random events happen between two calls of the operator, which may also crash there.
func (w *world) yield() {
	w.tick()
	if w.calm || w.depth > 0 {
		return
	}
	w.depth++
	for w.oneIn(3) {
		w.randomEvent()
	}
	w.depth--
	if w.oneIn(100) {
		panic(crash{})
	}
}

// restartOnCrash runs a part of the operator, and restarts the operator if it crashes.
func (w *world) restartOnCrash(part func()) {
	defer func() {
		if problem := recover(); problem != nil {
			if _, ok := problem.(crash); !ok {
				panic(problem)
			}
			w.depth = 0
			w.startOperator()
			w.note("the operator crashes and restarts")
		}
	}()
	part()
}

// set returns the newest version of the NodeSet; nil if it is deleted.
func (w *world) set() *plan.Set { return w.kube.set.newest() }

// change edits the NodeSet.
func (w *world) change(edit func(*plan.Set)) {
	next := *w.set()
	edit(&next)
	w.kube.set.put(&next)
}

// fail fails a test, with the trace.
func (w *world) fail(t *testing.T, what string) {
	t.Helper()
	trace := "(not traced)"
	if w.trace != nil {
		trace = w.trace.String()
	}
	t.Fatalf("%s\n%s\n%s", what, strings.Join(w.broken, "\n"), trace)
}

// sorted returns the sorted keys of a map.
func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
