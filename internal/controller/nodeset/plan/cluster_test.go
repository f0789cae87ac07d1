package plan_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A cluster is the actual state of Slurm.
type cluster struct {
	up bool // whether slurmctld runs
	// noREST says that slurmrestd does not answer, even if slurmctld runs.
	noREST bool

	since        time.Time // when slurmctld started
	startUnknown bool      // whether slurmctld does not report since yet
	nodes        map[string]*node
	jobs         map[int64]*job
	lastJob      int64
}

// A node is slurmctld's record of a Slurm node.
type node struct {
	slurm.Node
	pod string // UID of the pod whose slurmd registered last
	// recordLost says that slurmctld no longer has the record, since recordLostAt.
	recordLost   bool
	recordLostAt time.Time
	// opened is the count at which others than the operator last opened it to jobs.
	opened int
	// stale says that others lifted a drain of the operator, and that its reason is still set.
	stale bool
	// foreign is the count at which an administrator or Slurm itself closed it; zero if neither did.
	foreign int
}

// A job runs on Slurm nodes, in the pods that they had when it started.
type job struct {
	pods  map[string]string // Slurm node to the pod's UID; empty if its processes have exited
	state string            // RUNNING, SUSPENDED, COMPLETING
	end   time.Time
}

// jobsOn returns the jobs on a Slurm node whose pod there matches.
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

// slurmd returns the pod that runs the slurmd of a Slurm node; nil if none does.
func (w *world) slurmd(name string) *object {
	for _, pod := range w.podsThat(
		func(pod *object, box *container) bool { return w.registeredAs(pod) == name && box.running }) {
		return pod
	}
	return nil
}

// register registers the slurmd of a pod with slurmctld.
func (w *world) register(pod *object) {
	name := w.registeredAs(pod)
	w.note("slurm: node %s registers", name)
	known := w.slurm.nodes[name]
	switch {
	case known == nil:
		known = &node{Node: slurm.Node{Name: name}}
		w.slurm.nodes[name] = known
	case known.recordLost:
		known.Flags, known.Reason = 0, ""
	}
	if known.pod != pod.UID {
		for _, id := range w.jobsOn(name, func(uid string) bool { return uid != pod.UID }) {
			delete(w.slurm.jobs, id) // slurmd -b reports that they are lost
		}
	}
	known.pod, known.recordLost, known.opened = pod.UID, false, w.count
	known.State, known.Flags = slurm.StateIdle, known.Flags&^slurm.FlagNotResponding
	if !known.Closed() {
		known.foreign = 0 // ReturnToService=2 clears DOWN, whatever set it
	}
	if name == pod.SlurmNode && !w.oneIn(10) { // otherwise the operator crashes before it records the registration
		w.write(pod, func(next *object) { next.Registered = true })
	}
	known.SlurmdStartedAt = w.kube.kubelets[pod.UID].started
	known.Comment = slurm.Owner{Namespace: "default", PodName: pod.Name, Node: pod.KubernetesNode, NodeSetName: setName,
		NodeSetUID: w.set().UID}.String()
}

// registeredAs returns the name under which a pod's slurmd registers: the host name if it is started without a name.
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
	return known == nil || known.recordLost || known.pod != pod.UID || !known.Responding()
}

// registering reports whether a pod's slurmd registers by itself: after slurmctld lost its record, it does so only when
// it restarts, or on request of an administrator.
func (w *world) registering(pod *object, box *container) bool {
	known := w.slurm.nodes[w.registeredAs(pod)]
	return w.unregistered(pod, box) &&
		(known == nil || !known.recordLost || known.pod != pod.UID || box.started.After(known.recordLostAt))
}

// enforceDeadlines registers the slurmds that would exceed the registration timeout, as the world assumes.
func (w *world) enforceDeadlines() {
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

// drain drains a Slurm node as an administrator.
func (w *world) drain(name, reason string) {
	w.pass(time.Second)
	w.note("slurm: an administrator drains %s: %s", name, reason)
	w.closedByOthers(name, reason)
	known := w.slurm.nodes[name]
	known.Flags = known.Flags&^slurm.FlagFail | slurm.FlagDrain
}

// failing sets FAIL on a Slurm node as an administrator, which closes it and, in Slurm, replaces a drain.
func (w *world) failing(name, reason string) {
	w.pass(time.Second)
	w.note("slurm: an administrator marks %s as failing: %s", name, reason)
	w.closedByOthers(name, reason)
	known := w.slurm.nodes[name]
	known.Flags = known.Flags&^slurm.FlagDrain | slurm.FlagFail
}

// closedByOthers records that others than the operator close a Slurm node.
func (w *world) closedByOthers(name, reason string) {
	known := w.slurm.nodes[name]
	known.Reason, known.ReasonAt, known.foreign, known.stale = reason, w.now.Truncate(time.Second), w.count, false
}

// undrain opens a Slurm node as an administrator, whatever closed it.
func (w *world) undrain(name string) {
	w.pass(time.Second)
	w.note("slurm: an administrator resumes %s", name)
	known := w.slurm.nodes[name]
	known.Flags &^= slurm.FlagDrain | slurm.FlagFail
	known.foreign, known.opened, known.stale = 0, w.count, slurm.IsOurReason(known.Reason)
}

// open reports whether Slurm could start a job on a Slurm node.
func (w *world) open(name string) bool {
	known, slurmd := w.slurm.nodes[name], w.slurmd(name)
	return w.slurm.up && known != nil && !known.recordLost && !known.Closed() && known.Responding() && slurmd != nil &&
		slurmd.UID == known.pod
}

// mayStart reports whether a job may start on an open Slurm node, as the world assumes: not in the gap that no rule can
// close.
func (w *world) mayStart(name string) bool {
	snapshot := w.mirror.current
	if snapshot == nil || w.slurm.nodes[name].opened < w.mirror.polled ||
		!snapshot.TakenAfter(w.now.Add(-maxSnapshotAge)) {
		return true
	}
	old := !snapshot.NodeAsOf(name).After(w.now.Add(-plan.MaxAbsenceAge))
	if record, known := snapshot.Node(name); known {
		return old && record.OnlyDown()
	}
	return old && w.slurmd(name).Started.IsZero()
}

// startJob starts a job on Slurm nodes; a length of zero is no time limit.
func (w *world) startJob(length time.Duration, nodes ...string) int64 {
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

// setJobState changes a job's state; DONE removes it.
func (w *world) setJobState(id int64, state string) {
	w.note("slurm: job %d is %s", id, state)
	if w.slurm.jobs[id].state = state; state == "DONE" {
		delete(w.slurm.jobs, id)
	}
}

// markDown sets a Slurm node that does not respond to DOWN, and drops the jobs whose processes have exited.
func (w *world) markDown(name string) {
	w.note("slurm: node %s does not respond and is down", name)
	known := w.slurm.nodes[name]
	known.State = slurm.StateDown
	known.Flags |= slurm.FlagNotResponding
	if known.Reason == "" || !known.Draining() {
		w.closedByOthers(name, "Not responding")
	}
	for _, id := range w.jobsOn(name, func(uid string) bool { return uid == "" }) {
		delete(w.slurm.jobs, id)
	}
}

// restart restarts slurmctld. After a crash it may have lost records of Slurm nodes, whose jobs fail.
func (w *world) restart(lost ...string) {
	w.note("slurm: slurmctld restarts; lost records: %v", lost)
	w.slurm.up, w.slurm.startUnknown, w.slurm.since = true, true, w.now
	for _, known := range w.slurm.nodes {
		known.Flags |= slurm.FlagNotResponding
		if slices.Contains(lost, known.Name) {
			w.loseRecord(known)
		}
	}
}

// loseRecord removes the record of a Slurm node from slurmctld, and every job on it.
func (w *world) loseRecord(known *node) {
	known.recordLost, known.recordLostAt = true, w.now
	for _, id := range w.jobsOn(known.Name, anyPod) {
		delete(w.slurm.jobs, id)
	}
}

// A mirror is the last snapshot in the operator's mirror of Slurm.
type mirror struct {
	current *slurm.Snapshot
	polled  int // the count at the last successful poll
	answers bool
}

// unreachable reports whether the operator cannot query Slurm.
func (w *world) unreachable() bool { return !w.slurm.up || w.slurm.noREST }

var errUnreachable = errors.New("slurm does not answer")

// poll refreshes the mirror as slurm.Mirror does: first jobs, always if they are demanded, then Slurm nodes.
func (w *world) poll(demanded bool) error {
	next := &slurm.Snapshot{}
	if w.mirror.current != nil {
		*next = *w.mirror.current
	}
	if w.unreachable() {
		w.mirror.answers = false
		return errUnreachable
	}
	if next.ControllerSince = w.slurm.since; w.slurm.startUnknown {
		next.ControllerSince, w.slurm.startUnknown = time.Time{}, false
	}
	if demanded || w.mirror.current == nil || !w.oneIn(2) {
		next.JobsAsOf, next.Loads = w.tick(), w.loads()
	}
	w.yield()
	if w.unreachable() {
		w.mirror.answers = false
		return errUnreachable
	}
	next.NodesAsOf, next.Nodes = w.tick(), w.records()
	w.mirror = mirror{current: next, polled: w.count, answers: true}
	return nil
}

// pollNodes refreshes the jobs, then some Slurm nodes, as slurm.Mirror does. If one does not exist, it polls all.
func (w *world) pollNodes(names []string) error {
	if w.unreachable() {
		w.mirror.answers = false
		return errUnreachable
	}
	if w.slurm.startUnknown || w.slurm.since != w.mirror.current.ControllerSince {
		return w.poll(true) // it has restarted
	}
	next := new(*w.mirror.current)
	next.JobsAsOf, next.Loads = w.tick(), w.loads()
	w.yield()
	if w.unreachable() {
		w.mirror.answers = false
		return errUnreachable
	}
	asOf := w.tick()
	var read []slurm.Node
	for _, record := range w.records() {
		if slices.Contains(names, record.Name) {
			read = append(read, *record)
		}
	}
	if len(read) < len(names) {
		return w.poll(true)
	}
	next, _ = next.WithNodes(read, asOf)
	w.mirror = mirror{current: next, polled: w.count, answers: true}
	return nil
}

// records returns slurmctld's list of Slurm nodes.
func (w *world) records() []*slurm.Node {
	var records []*slurm.Node
	for _, name := range sorted(w.slurm.nodes) {
		known := w.slurm.nodes[name]
		if known.recordLost {
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

// loads returns the jobs on each Slurm node, from slurmctld's list of jobs.
func (w *world) loads() map[string]slurm.Load {
	loads := map[string]slurm.Load{}
	for _, id := range slices.Sorted(maps.Keys(w.slurm.jobs)) {
		job := w.slurm.jobs[id]
		for name := range job.pods {
			if w.slurm.nodes[name].recordLost {
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
