package plan_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/schedule"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// TestElasticModel runs random sequences of events on an elastic NodeSet in a simulated Slurm and Kubernetes. It checks
// each action of the plan, and that all jobs run and all pods are gone once all faults are cleared.
func TestElasticModel(t *testing.T) {
	for seed := range uint64(*sequences / 10) {
		w := newElasticModel(seed)
		for range 30 + w.rand.IntN(120) {
			w.step()
		}
		w.recover()
		if len(w.broken) > 0 {
			t.Fatalf("sequence %d fails:\n%s\n%s", seed, strings.Join(w.broken, "\n"), w.trace.String())
		}
	}
}

// The power states of a simulated Slurm node.
const (
	isOff = iota
	isWaking
	isUp
	isLeaving
	isGoing
)

const (
	modelResumeTimeout  = 20 * time.Minute
	modelSuspendTimeout = 30 * time.Second
	modelRequeueDelay   = 2 * time.Minute
	modelSlurmdTimeout  = 5 * time.Minute
)

// An elasticNode is a simulated Slurm node: with a record in slurm.conf, dynamic, or unknown to slurmctld.
type elasticNode struct {
	kind     nodeKind
	weight   int // in its record
	power    int
	since    time.Time
	wanted   bool // a power-up was requested
	drained  bool
	down     bool
	reason   string
	reasonAt time.Time
	lastBusy time.Time
	silent   time.Time // since when it has not responded
	pod      string    // UID of the pod whose slurmd has registered since the last power-up
}

// An elasticJob needs some nodes for itself.
type elasticJob struct {
	size     int
	nodes    []int
	begin    time.Time
	length   time.Duration
	running  bool
	end      time.Time
	finished bool
}

// An elasticModel is a simulated NodeSet.
type elasticModel struct {
	// fixed says that the NodeSet is not elastic at the moment.
	fixed    bool
	weight   int // as the NodeSet wants it in all records
	sizes    plan.Elastic
	rand     *rand.Rand
	now      time.Time
	set      plan.Set
	nodes    []*elasticNode
	pods     map[int]*plan.Pod
	jobs     []*elasticJob
	places   int // how many pods have room in Kubernetes
	created  int
	history  plan.DrainHistory
	mirrored *slurm.Snapshot
	requests []*plan.Request
	counted  bool // there are too many jobs to list, and they are only counted
	plans    int  // made so far
	trace    strings.Builder
	broken   []string
}

func newElasticModel(seed uint64) *elasticModel {
	w := &elasticModel{rand: rand.New(rand.NewPCG(seed, 4)), now: epoch, pods: map[int]*plan.Pod{}}
	size := 1 + w.rand.IntN(5)
	w.places = size
	w.set = plan.Set{
		Name: setName, UID: "set-1", Revision: "false-0", Registration: 2 * time.Minute,
		Update: plan.Update{Replace: true, MaxUnavailable: 1},
		Elastic: &plan.Elastic{
			Max: size, Idle: time.Minute, Start: 3 * time.Minute, Backoff: 5 * time.Minute,
			Min: w.rand.IntN(2), Warm: w.rand.IntN(2),
		},
	}
	if w.rand.IntN(2) == 0 {
		w.set.Elastic.Schedules = []schedule.Window{{
			Warm: 1 + w.rand.IntN(size), Days: []time.Weekday{epoch.Weekday()}, Zone: time.UTC,
			From: 12*time.Hour + 5*time.Minute, To: 12*time.Hour + 30*time.Minute,
		}}
	}
	if w.rand.IntN(2) == 0 {
		w.set.Elastic.Class = "check-capacity"
	}
	for range size {
		w.nodes = append(w.nodes, &elasticNode{})
	}
	w.sizes, w.set.Replicas = *w.set.Elastic, 1+w.rand.IntN(size)
	return w
}

func slotName(i int) string { return fmt.Sprintf("gpu-%d", i) }

func (w *elasticModel) note(format string, args ...any) {
	fmt.Fprintf(&w.trace, "%s  %s\n", w.now.Sub(epoch).Truncate(time.Second), fmt.Sprintf(format, args...))
}

func (w *elasticModel) violate(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
	w.note("!! "+format, args...)
}

// pass lets time pass, in which Slurm and Kubernetes do what they do by themselves.
func (w *elasticModel) pass(length time.Duration) {
	for end := w.now.Add(length); w.now.Before(end); {
		w.now = w.now.Add(time.Second)
		w.runSlurm()
		w.runPods()
		w.runAutoscaler()
		if w.rand.IntN(10) == 0 {
			w.configure()
		}
	}
}

// jobOn returns the job that holds a node; nil if none does.
func (w *elasticModel) jobOn(node int) *elasticJob {
	for _, job := range w.jobs {
		if slices.Contains(job.nodes, node) {
			return job
		}
	}
	return nil
}

// requeue returns the job of a node to the queue.
func (w *elasticModel) requeue(node int) {
	if job := w.jobOn(node); job != nil {
		w.note("slurm: job %d returns to the queue", slices.Index(w.jobs, job)+1)
		for _, other := range job.nodes {
			w.nodes[other].lastBusy = w.now
		}
		job.nodes, job.running, job.begin = nil, false, w.now.Add(modelRequeueDelay)
	}
}

func (n *elasticNode) move(power int, now time.Time) { n.power, n.since = power, now }

// suspend powers a node down, which clears a drain.
func (w *elasticModel) suspend(node *elasticNode) {
	node.drained, node.down, node.pod = false, false, ""
	node.move(isGoing, w.now)
}

func (w *elasticModel) runSlurm() {
	w.runNodes()
	w.runJobs()
}

func (w *elasticModel) runNodes() {
	for i, node := range w.nodes {
		job := w.jobOn(i)
		switch {
		case node.power == isUp && node.pod == "" && w.now.Sub(node.silent) >= modelSlurmdTimeout:
			if !node.down {
				w.requeue(i)
				if node.down = true; node.reason == "" {
					node.reason, node.reasonAt = "Not responding", w.now
				}
			}
		case node.kind != isRecorded:
		case node.power == isOff && (job != nil || node.wanted) && !node.down:
			node.wanted = false
			node.move(isWaking, w.now)
		case node.power == isWaking && w.now.Sub(node.since) >= modelResumeTimeout:
			w.requeue(i)
			node.move(isOff, w.now)
			node.down, node.reason, node.reasonAt = true, "ResumeTimeout reached", w.now
		case node.power == isLeaving && job == nil:
			w.suspend(node)
		case node.power == isGoing && w.now.Sub(node.since) >= modelSuspendTimeout:
			node.move(isOff, w.now)
		}
	}
}

func (w *elasticModel) runJobs() {
	for _, job := range w.jobs {
		ready := len(job.nodes) > 0 && !slices.ContainsFunc(job.nodes, func(node int) bool { return w.nodes[node].pod == "" })
		switch {
		case job.running && !w.now.Before(job.end):
			for _, node := range job.nodes {
				w.nodes[node].lastBusy = w.now
			}
			job.running, job.finished, job.nodes = false, true, nil
		case ready && !job.running:
			job.running, job.end = true, w.now.Add(job.length)
		case len(job.nodes) == 0 && !job.finished && !w.now.Before(job.begin):
			w.allocate(job)
		}
	}
}

// allocate gives a job the first free nodes, if there are enough.
func (w *elasticModel) allocate(job *elasticJob) {
	var free []int
	for i, node := range w.nodes {
		responds := node.power == isOff || node.power == isWaking || node.power == isUp && node.pod != ""
		if node.kind != isUnknown && responds && !node.drained && !node.down && w.jobOn(i) == nil {
			free = append(free, i)
		}
	}
	if len(free) >= job.size {
		job.nodes = free[:job.size]
		w.note("slurm: job %d is allocated to %v", slices.Index(w.jobs, job)+1, job.nodes)
	}
}

// runPods schedules pods as far as there is room, starts their slurmds, and removes those that are deleted.
func (w *elasticModel) runPods() {
	placed := 0
	for _, pod := range w.pods {
		if !pod.Unscheduled {
			placed++
		}
	}
	for _, i := range slices.Sorted(maps.Keys(w.pods)) {
		pod, node := w.pods[i], w.nodes[i]
		switch {
		case pod.Terminating:
			if w.rand.IntN(3) == 0 {
				delete(w.pods, i)
			}
		case pod.Unscheduled && placed < w.places:
			pod.Unscheduled, pod.KubernetesNode = false, "m1"
			placed++
		case !pod.Unscheduled && pod.ReadySince.IsZero() && w.rand.IntN(10) == 0:
			pod.EverRan, pod.Started, pod.ReadySince, pod.Registered = true, w.now, w.now, true
			if w.registers(pod, node) && node.power == isWaking || node.power == isUp || node.power == isOff {
				w.note("slurm: %s registers", slotName(i))
				node.pod, node.lastBusy = pod.UID, w.now
				if node.down = false; node.reason == "Not responding" {
					node.reason = ""
				}
				node.move(isUp, w.now)
			}
		}
	}
}

// step lets something happen: an event, or a reconcile of the operator.
func (w *elasticModel) step() {
	node := w.rand.IntN(len(w.nodes))
	switch w.rand.IntN(16) {
	case 0, 1:
		w.jobs = append(w.jobs, &elasticJob{
			size: 1 + w.rand.IntN(len(w.nodes)), begin: w.now, length: time.Duration(w.rand.IntN(90)) * time.Second,
		})
		w.note("a user submits job %d for %d nodes", len(w.jobs), w.jobs[len(w.jobs)-1].size)
	case 2:
		w.places = w.rand.IntN(len(w.nodes) + 1)
		w.note("Kubernetes has room for %d pods", w.places)
		w.counted = w.rand.IntN(3) == 0
		w.note("slurm: there are too many jobs to list: %t", w.counted)
	case 3:
		w.drainByAdmin(node)
	case 4:
		w.resumeByAdmin(node)
	case 5:
		if pod := w.pods[node]; pod != nil && !pod.Terminating && w.rand.IntN(3) == 0 {
			w.note("a user deletes pod %s", pod.Name)
			w.terminate(node)
		}
	case 6:
		w.reconcile(w.rand.IntN(4))
		w.note("the operator is killed")
		w.history, w.mirrored = plan.DrainHistory{}, nil
	case 7:
		if w.rand.IntN(8) == 0 {
			w.switchMode()
		} else if w.rand.IntN(4) == 0 {
			w.changeWeight()
		}
		w.pass(time.Duration(w.rand.IntN(300)) * time.Second)
	case 8, 9, 10:
		w.pass(time.Duration(w.rand.IntN(20)) * time.Second)
	default:
		w.reconcile(math.MaxInt)
	}
}

func (w *elasticModel) drainByAdmin(i int) {
	node := w.nodes[i]
	w.note("an administrator drains %s", slotName(i))
	if node.kind == isUnknown {
		return
	}
	node.drained, node.reason, node.reasonAt = true, "broken fan", w.now
}

func (w *elasticModel) resumeByAdmin(i int) {
	node := w.nodes[i]
	if node.drainedByAdmin() {
		w.note("an administrator resumes %s", slotName(i))
		node.drained, node.down, node.reason = false, false, ""
	}
}

// terminate deletes a pod. The jobs that run in it return to the queue.
func (w *elasticModel) terminate(i int) {
	pod, node := w.pods[i], w.nodes[i]
	pod.Terminating, pod.Terminates = true, w.now.Add(terminationGrace)
	if node.pod == pod.UID {
		node.pod, node.silent = "", w.now
		if job := w.jobOn(i); job != nil && job.running {
			w.requeue(i)
		}
	}
}

// recover clears all faults, and checks that all jobs run and that the NodeSet shrinks to its minimum.
func (w *elasticModel) recover() {
	w.note("all faults are cleared")
	w.places = len(w.nodes)
	for i := range w.nodes {
		w.resumeByAdmin(i)
	}
	w.sizes.Min, w.sizes.Warm, w.sizes.Schedules = 0, 0, nil
	if w.fixed && w.converge(w.settledFixed) {
		w.switchMode()
	}
	if w.converge(w.settled) || len(w.broken) > 0 {
		return
	}
	w.violate("it does not converge: pods %v, nodes %+v", slices.Sorted(maps.Keys(w.pods)), w.read().Nodes)
}

// settled reports whether all jobs have run, all nodes are powered down and open, and there are no pods and requests.
func (w *elasticModel) settled() bool {
	return len(w.pods) == 0 && len(w.requests) == 0 &&
		!slices.ContainsFunc(w.jobs, func(job *elasticJob) bool { return !job.finished }) &&
		!slices.ContainsFunc(w.nodes, func(node *elasticNode) bool {
			return node.kind != isRecorded || node.weight != w.weight || node.power != isOff || node.drained || node.down
		})
}
