package plan_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
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
	pod.Terminating = true
	if node.pod == pod.UID {
		node.pod, node.silent = "", w.now
		if job := w.jobOn(i); job != nil && job.running {
			w.requeue(i)
		}
	}
}

// snapshot returns the state of Slurm.
func (w *elasticModel) read() *slurm.Snapshot {
	snapshot := &slurm.Snapshot{
		NodesAsOf: w.now, JobsAsOf: w.now, ControllerSince: epoch.Add(-time.Hour),
		Queue: slurm.Queue{Loads: map[string]slurm.Load{}},
	}
	for _, job := range w.jobs {
		if len(job.nodes) == 0 && !job.finished {
			snapshot.Pending++
		}
	}
	for i, node := range w.nodes {
		if node.kind == isUnknown {
			continue
		}
		record := &slurm.Node{Name: slotName(i), State: slurm.StateIdle, Flags: node.kind.flag(), Reason: node.reason,
			ReasonAt: node.reasonAt, LastBusy: node.lastBusy, Comment: modelOwner}
		record.Flags |= map[int]slurm.Flags{
			isOff: slurm.FlagPoweredDown, isWaking: slurm.FlagPoweringUp | slurm.FlagNotResponding,
			isLeaving: slurm.FlagPowerDown, isGoing: slurm.FlagPoweringDown,
		}[node.power]
		if node.power == isUp && node.pod == "" {
			record.Flags |= slurm.FlagNotResponding
		}
		if node.wanted {
			record.Flags |= slurm.FlagPowerUp
		}
		if node.drained {
			record.Flags |= slurm.FlagDrain
		}
		if node.down {
			record.State = slurm.StateDown
		}
		if job := w.jobOn(i); job != nil {
			record.State, record.AllocatedCPUs = slurm.StateMixed, 1
			snapshot.Loads[record.Name] = slurm.Load{Running: 1, Job: int64(slices.Index(w.jobs, job) + 1), Unlimited: true}
		}
		snapshot.Nodes = append(snapshot.Nodes, record)
	}
	return snapshot
}

// plan makes a plan from the last snapshot, or a new one.
func (w *elasticModel) plan(fresh bool) plan.Plan {
	if fresh || w.mirrored == nil {
		w.now = w.now.Add(time.Millisecond)
		w.mirrored = w.read()
	}
	w.observeMode()
	s := &plan.Snapshot{Now: w.now, Set: w.set, Slurm: w.mirrored, JustRead: fresh, Answers: true,
		KubernetesNodes: map[string]plan.KubernetesNode{"m1": {}}}
	var names []string
	dynamic := 0
	for _, i := range slices.Sorted(maps.Keys(w.pods)) {
		s.Pods = append(s.Pods, *w.pods[i])
		if w.pods[i].Dynamic {
			dynamic++
		}
		names = append(names, w.pods[i].SlurmNode)
	}
	w.history.Observe(w.mirrored, names)
	s.DrainedSince = w.history.Since()
	next := plan.Next(s)
	if sum := sumOf(next.Elastic.Causes) + dynamic; sum != next.Desired && !w.fixed {
		w.violate("%d Slurm nodes are up, of which %d have a cause", next.Desired, sum)
	}
	return next
}

// reconcile plans, and carries out the first writes of the plan.
func (w *elasticModel) reconcile(writes int) {
	next := w.plan(w.rand.IntN(3) == 0)
	if next.NeedsRefresh {
		next = w.plan(true)
	}
	for _, action := range next.Actions[:min(writes, len(next.Actions))] {
		if action.Kind == plan.RequestCapacity || action.Kind == plan.Withdraw {
			w.note("operator: %s %s: %s", action.Kind, action.Request.Name, action.Why)
			w.ask(action)
			continue
		}
		w.note("operator: %s %s: %s", action.Kind, action.SlurmNode, action.Why)
		w.carryOut(action)
	}
	w.mirrored = nil
}

// carryOut carries out an action, and checks that it is allowed.
func (w *elasticModel) carryOut(action plan.Action) {
	if action.Kind == plan.Prune {
		w.prune(action.SlurmNode)
		return
	}
	i := action.Pod.Ordinal
	node, job := w.nodes[i], w.jobOn(i)
	switch action.Kind {
	case plan.Create:
		w.createPod(action)
	case plan.Delete:
		if job != nil && job.running && node.pod == w.pods[i].UID {
			w.violate("pod %s is deleted with a job", action.Pod.Name)
		}
		w.terminate(i)
	case plan.ForcePowerDown, plan.PowerDown, plan.PowerUp, plan.Resume, plan.Drain, plan.Undrain, plan.ClearReason:
		w.request(action)
	case plan.MarkPod:
		w.pods[i].Mark = plan.Marked
	case plan.UnmarkPod:
		w.pods[i].Mark = plan.Unmarked
	case plan.Prune, plan.RequestCapacity, plan.Withdraw:
		w.violate("unexpected %s", action.Kind)
	}
}

// createPod creates a pod, and checks that it is needed.
func (w *elasticModel) createPod(action plan.Action) {
	i := action.Pod.Ordinal
	node := w.nodes[i]
	if (node.kind == isRecorded) == w.fixed {
		w.violate("a pod is created for %s, whose slurmd would not start", slotName(i))
	}
	if w.pods[i] != nil || node.power != isWaking && w.jobOn(i) == nil && !node.down && !w.fixed {
		w.violate("a pod is created for %s, which does not need one", action.SlurmNode)
		return
	}
	if !w.hasRoom(action) {
		w.violate("a pod is created for %s, for which there is no room", action.SlurmNode)
	}
	w.created++
	w.pods[i] = &plan.Pod{Name: slotName(i), UID: strconv.Itoa(w.created), SlurmNode: slotName(i), Ordinal: i,
		Revision: w.set.Revision, Created: w.now, Unscheduled: true, Named: true, Dynamic: w.fixed}
	if action.Request != nil {
		w.pods[i].Request = action.Request.Name
	}
}

// request carries out a request to Slurm.
func (w *elasticModel) request(action plan.Action) {
	i := action.Pod.Ordinal
	node, job := w.nodes[i], w.jobOn(i)
	if node.drainedByAdmin() && action.Kind != plan.Resume && action.Kind != plan.ClearReason {
		w.violate("%s of %s, which an administrator has drained", action.Kind, action.SlurmNode)
	}
	switch action.Kind { //nolint:exhaustive // the others are no requests
	case plan.ForcePowerDown:
		w.giveUp(i, action)
	case plan.PowerDown:
		if job != nil && node.pod != "" {
			w.violate("%s is powered down, although it has a job", action.SlurmNode)
		}
		if node.power == isUp {
			w.suspend(node)
		}
	case plan.PowerUp:
		if node.power != isOff {
			w.violate("%s is powered up, although it is up", action.SlurmNode)
		}
		node.wanted = true
	case plan.Resume:
		node.down = false
	case plan.Drain:
		if node.power == isWaking && job != nil {
			w.violate("%s is drained while it is powering up for a job", action.SlurmNode)
		}
		node.drained, node.reason, node.reasonAt = true, action.Why, w.now
	case plan.Undrain:
		node.drained, node.reason = false, ""
	case plan.ClearReason:
		node.reason = ""
	}
}

// giveUp powers a node down that is powering up, and checks that its job does not return to the queue because of
// another weight.
func (w *elasticModel) giveUp(i int, action plan.Action) {
	node, job := w.nodes[i], w.jobOn(i)
	if action.Cause == plan.Updating && job != nil && !w.fixed {
		w.violate("job %d is requeued because of another weight", slices.Index(w.jobs, job)+1)
	}
	if node.power != isWaking {
		w.violate("%s is forced down while it is up", action.SlurmNode)
	}
	w.requeue(i)
	w.suspend(node)
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
