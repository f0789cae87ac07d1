package plan_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A cluster is what is really so in Slurm.
type cluster struct {
	up bool // whether slurmctld runs
	// unreachable says that slurmrestd does not answer, whatever slurmctld does.
	unreachable bool

	since   time.Time
	vague   bool // whether it cannot yet tell since when it runs
	nodes   map[string]*node
	jobs    map[int64]*job
	lastJob int64
}

// A node is slurmctld's record of a node.
type node struct {
	slurm.Node
	pod string // UID of the pod whose slurmd registered last
	// forgotten says that slurmctld does not have it any more, since forgottenAt.
	forgotten   bool
	forgottenAt time.Time
	// opened is when somebody other than the operator made it take jobs.
	opened int
	// stale says that somebody else lifted a drain of ours, and that its reason is still there.
	stale bool
	// foreign is when a person or Slurm itself closed it; zero when none of them did.
	foreign int
}

// A job runs on some nodes, in the pods that they had when it began.
type job struct {
	pods  map[string]string // node to the pod's UID; empty when its processes are dead
	state string            // RUNNING, SUSPENDED, COMPLETING
	end   time.Time
}

// jobsOn lists the jobs on a node that slurmctld knows, or with processes in a pod.
func (w *world) jobsOn(node string, matches func(uid string) bool) []int64 {
	var ids []int64
	for id := int64(1); id <= w.slurm.lastJob && len(w.slurm.jobs) > 0; id++ {
		job := w.slurm.jobs[id]
		if job == nil {
			continue
		}
		if uid, on := job.pods[node]; on && matches(uid) {
			ids = append(ids, id)
		}
	}
	return ids
}

func anyPod(string) bool { return true }

// slurmd is the pod that runs the slurmd of a node; nil when none does.
func (w *world) slurmd(name string) *object {
	for _, pod := range w.podsThat(
		func(pod *object, box *container) bool { return w.registeredAs(pod) == name && box.running }) {
		return pod
	}
	return nil
}

// register makes the slurmd of a pod known to slurmctld.
func (w *world) register(pod *object) {
	name := w.registeredAs(pod)
	w.note("slurm: node %s registers", name)
	known := w.slurm.nodes[name]
	switch {
	case known == nil:
		known = &node{Node: slurm.Node{Name: name}}
		w.slurm.nodes[name] = known
	case known.forgotten:
		known.Flags, known.Reason = 0, ""
	}
	if known.pod != pod.UID {
		for _, id := range w.jobsOn(name, func(uid string) bool { return uid != pod.UID }) {
			delete(w.slurm.jobs, id) // slurmd -b tells that they are lost
		}
	}
	known.pod, known.forgotten, known.opened = pod.UID, false, w.count
	known.State, known.Flags = slurm.StateIdle, known.Flags&^slurm.FlagNotResponding
	if !known.Closed() {
		known.foreign = 0 // ReturnToService=2 ends DOWN, no matter who set it
	}
	if name == pod.SlurmNode && !w.chance(10) { // or the operator stops before it writes that down
		w.write(pod, func(next *object) { next.Registered = true })
	}
	known.Comment = slurm.Owner{Namespace: "default", PodName: pod.Name, Node: pod.KubernetesNode, NodeSetName: setName,
		NodeSetUID: w.set().UID}.Comment()
}

// registeredAs is the name under which a pod's slurmd registers: that of its host when it was told none.
func (w *world) registeredAs(pod *object) string {
	if pod.Named {
		return pod.SlurmNode
	}
	return "host-" + pod.KubernetesNode
}

// unregistered reports whether a pod's slurmd may register.
func (w *world) unregistered(pod *object, box *container) bool {
	if !box.running || w.kube.faulty[pod.Revision] == neverRegisters {
		return false
	}
	known := w.slurm.nodes[w.registeredAs(pod)]
	return known == nil || known.forgotten || known.pod != pod.UID || !known.Responding()
}

// registering reports whether a pod's slurmd registers by itself: one that slurmctld has forgotten does so only when it
// starts again, or when somebody makes it.
func (w *world) registering(pod *object, box *container) bool {
	known := w.slurm.nodes[w.registeredAs(pod)]
	return w.unregistered(pod, box) &&
		(known == nil || !known.forgotten || known.pod != pod.UID || box.started.After(known.forgottenAt))
}

// deadlines makes happen what the world assumes to happen in time.
func (w *world) deadlines() {
	if !w.slurm.up || w.set() == nil {
		return
	}
	limit := w.now.Add(-w.set().Registration * 9 / 10)
	for _, pod := range w.podsThat(w.registering) {
		if w.kube.kubelets[pod.UID].started.Before(limit) && w.slurm.since.Before(limit) {
			w.register(pod)
		}
	}
}

// drain is somebody else's.
func (w *world) drain(name, reason string) {
	w.pass(time.Second)
	w.note("slurm: an administrator drains %s: %s", name, reason)
	w.closed(name, reason)
	known := w.slurm.nodes[name]
	known.Flags = known.Flags&^slurm.FlagFail | slurm.FlagDrain
}

// failing says that a node is about to fail, which closes it and, in Slurm, ends a drain.
func (w *world) failing(name, reason string) {
	w.pass(time.Second)
	w.note("slurm: an administrator marks %s as failing: %s", name, reason)
	w.closed(name, reason)
	known := w.slurm.nodes[name]
	known.Flags = known.Flags&^slurm.FlagDrain | slurm.FlagFail
}

// closed notes that somebody else closes a node.
func (w *world) closed(name, reason string) {
	known := w.slurm.nodes[name]
	known.Reason, known.ReasonAt, known.foreign, known.stale = reason, w.now.Truncate(time.Second), w.count, false
}

// undrain opens a node, no matter who closed it.
func (w *world) undrain(name string) {
	w.pass(time.Second)
	w.note("slurm: an administrator resumes %s", name)
	known := w.slurm.nodes[name]
	known.Flags &^= slurm.FlagDrain | slurm.FlagFail
	known.foreign, known.opened, known.stale = 0, w.count, slurm.IsOurReason(known.Reason)
}

// open tells whether a node could take a job.
func (w *world) open(name string) bool {
	known, slurmd := w.slurm.nodes[name], w.slurmd(name)
	return w.slurm.up && known != nil && !known.forgotten && !known.Closed() && known.Responding() && slurmd != nil &&
		slurmd.UID == known.pod
}

// mayStart is what the world assumes of the gap that no rule can close: see there.
func (w *world) mayStart(name string) bool {
	look := w.mirror.current
	return look == nil || w.slurm.nodes[name].opened < w.mirror.looked ||
		!look.TakenAfter(w.now.Add(-maxSnapshotAge))
}

// begin starts a job.
func (w *world) begin(length time.Duration, nodes ...string) int64 {
	w.slurm.lastJob++
	started := &job{pods: map[string]string{}, state: "RUNNING"}
	if length > 0 {
		started.end = w.now.Add(length)
	}
	for _, name := range nodes {
		started.pods[name] = w.slurm.nodes[name].pod
	}
	w.slurm.jobs[w.slurm.lastJob] = started
	w.note("slurm: job %d starts on %s", w.slurm.lastJob, strings.Join(nodes, " and "))
	return w.slurm.lastJob
}

// become changes a job's state; DONE ends it.
func (w *world) become(id int64, state string) {
	w.note("slurm: job %d is %s", id, state)
	if w.slurm.jobs[id].state = state; state == "DONE" {
		delete(w.slurm.jobs, id)
	}
}

// lost makes slurmctld notice that a node does not answer any more, and give up its jobs.
func (w *world) lost(name string) {
	w.note("slurm: node %s does not respond and is down", name)
	known := w.slurm.nodes[name]
	known.State = slurm.StateDown
	known.Flags |= slurm.FlagNotResponding
	if known.Reason == "" || !known.Draining() {
		w.closed(name, "Not responding")
	}
	for _, id := range w.jobsOn(name, func(uid string) bool { return uid == "" }) {
		delete(w.slurm.jobs, id)
	}
}

// restart makes slurmctld start again. It may have crashed, and know less than before: jobs on nodes that it does not
// know fail.
func (w *world) restart(forgets ...string) {
	w.note("slurm: slurmctld restarts and forgets %v", forgets)
	w.slurm.up, w.slurm.vague, w.slurm.since = true, true, w.now
	for _, known := range w.slurm.nodes {
		known.Flags |= slurm.FlagNotResponding
		if slices.Contains(forgets, known.Name) {
			w.forgetRecord(known)
		}
	}
}

// forgetRecord takes the record of a node from slurmctld, and with it every job that has processes there.
func (w *world) forgetRecord(known *node) {
	known.forgotten, known.forgottenAt = true, w.now
	for _, id := range w.jobsOn(known.Name, anyPod) {
		delete(w.slurm.jobs, id)
	}
}

// A mirror is what the operator's mirror last saw, and when.
type mirror struct {
	current *slurm.Snapshot
	looked  int
	answers bool
}

// away tells whether the operator cannot ask Slurm.
func (w *world) away() bool { return !w.slurm.up || w.slurm.unreachable }

var errAway = errors.New("slurm does not answer")

// look polls as slurm.Mirror does: jobs first, if they are demanded, and then nodes.
func (w *world) look(demanded bool) error {
	next := &slurm.Snapshot{}
	if w.mirror.current != nil {
		*next = *w.mirror.current
	}
	if w.away() {
		w.mirror.answers = false
		return errAway
	}
	if next.ControllerSince = w.slurm.since; w.slurm.vague {
		next.ControllerSince, w.slurm.vague = time.Time{}, false
	}
	if demanded || w.mirror.current == nil || !w.chance(2) {
		next.JobsAsOf, next.Loads = w.tick(), w.loads()
	}
	w.yield()
	if w.away() {
		w.mirror.answers = false
		return errAway
	}
	next.NodesAsOf, next.Nodes = w.tick(), w.records()
	w.mirror = mirror{current: next, looked: w.count, answers: true}
	return nil
}

// records is what slurmctld says about nodes.
func (w *world) records() []*slurm.Node {
	var records []*slurm.Node
	for _, name := range sorted(w.slurm.nodes) {
		known := w.slurm.nodes[name]
		if known.forgotten {
			continue
		}
		record := known.Node
		for _, id := range w.jobsOn(name, anyPod) {
			switch w.slurm.jobs[id].state {
			case "RUNNING":
				record.State, record.AllocatedCPUs = slurm.StateMixed, record.AllocatedCPUs+1
			case "COMPLETING":
				record.Flags |= slurm.FlagCompleting
			}
		}
		records = append(records, &record)
	}
	return records
}

// loads is what slurmctld says about jobs.
func (w *world) loads() map[string]slurm.Load {
	loads := map[string]slurm.Load{}
	for _, id := range slices.Sorted(maps.Keys(w.slurm.jobs)) {
		job := w.slurm.jobs[id]
		for name := range job.pods {
			if w.slurm.nodes[name].forgotten {
				continue
			}
			load := loads[name]
			switch job.state {
			case "RUNNING":
				load.Running++
			case "COMPLETING":
				load.Completing++
			default:
				load.Other++
			}
			if load.Job, load.Until = id, job.end; job.end.IsZero() {
				load.Unlimited = true
			}
			loads[name] = load
		}
	}
	return loads
}
