package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// An event is an action of others than the operator, and its relative frequency. It is a no-op if it does not apply.
type event struct {
	weight int
	do     func(*world)
}

// events happen without the operator.
var events = []event{
	// the scheduler and the kubelets
	{8, func(w *world) {
		w.onPod(func(pod *object, _ *container) bool { return pod.Unscheduled && !pod.Terminating },
			func(pod *object) { w.schedule(pod, w.kubernetesNodeFor(pod)) })
	}},
	{8, func(w *world) { w.onPod(w.startable, w.start) }},
	{12, func(w *world) { w.onPod(unreported, w.report) }},
	{6, func(w *world) {
		w.onPod(func(pod *object, _ *container) bool { return pod.Terminating }, func(pod *object) {
			w.note("kubernetes: %s is removed", pod.Name)
			w.terminate(pod)
		})
	}},
	{1, func(w *world) { w.onPod(running, w.crashSlurmd) }},
	{1, func(w *world) { w.onPod(running, w.exitPod) }},
	{1, func(w *world) { w.onPod(notTerminating, w.deleteByOthers) }},

	// users, on pods and Kubernetes nodes
	{1, func(w *world) { w.onPod(notTerminating, func(pod *object) { w.cordonPod(pod.Name, w.oneIn(2)) }) }},
	{1, func(w *world) {
		w.onPod(notTerminating, func(pod *object) {
			cost := w.rand.Int32N(3)
			w.note("a user sets the deletion cost of %s to %d", pod.Name, cost)
			w.write(pod, func(next *object) { next.DeletionCost = cost })
		})
	}},
	{1, func(w *world) {
		name := pick(w, sorted(w.kube.kubernetesNodes))
		w.cordon(name, w.kubernetesNode(name).Drain == "")
	}},
	{1, func(w *world) {
		if set := w.set(); set != nil && set.DaemonSet {
			name := pick(w, sorted(w.kube.kubernetesNodes))
			w.selectNode(name, !w.kubernetesNode(name).Selected)
		}
	}},
	{1, func(w *world) {
		if set := w.set(); set != nil && set.DaemonSet {
			w.taint(pick(w, sorted(w.kube.kubernetesNodes)))
		}
	}},
	{1, func(w *world) {
		if set := w.set(); set != nil && set.DaemonSet {
			w.toggleNodeObject(pick(w, sorted(w.kube.kubernetesNodes)))
		}
	}},

	// Slurm
	{10, func(w *world) {
		if w.slurm.up {
			w.onPod(w.unregistered, w.register)
		}
	}},
	{12, (*world).randomJob},
	{3, func(w *world) { w.onJob("RUNNING", "SUSPENDED") }},
	{1, func(w *world) { w.onJob("SUSPENDED", "RUNNING") }},
	{3, func(w *world) { w.onJob("RUNNING", "COMPLETING") }},
	{3, func(w *world) { w.onJob("COMPLETING", "DONE") }},
	{2, func(w *world) { w.onJob("SUSPENDED", "DONE") }},
	{4, func(w *world) {
		w.onNode(func(known *node) bool { return w.slurm.up && !known.Draining() },
			func(name string) { w.drain(name, "broken fan") })
	}},
	{2, func(w *world) {
		w.onNode(func(known *node) bool { return w.slurm.up && !known.Flags.Has(slurm.FlagFail) },
			func(name string) { w.failing(name, "XID 79") })
	}},
	{1, func(w *world) {
		w.onNode(func(known *node) bool { return w.slurm.up && known.State == slurm.StateIdle }, w.setDown)
	}},
	{2, func(w *world) { // not before the operator could clear its own stale reason
		w.onNode(func(known *node) bool {
			return w.slurm.up && !known.Closed() && !known.stale
		}, w.drainBySlurm)
	}},
	{1, func(w *world) {
		w.onNode(func(known *node) bool { // not before the operator has recorded its registration
			pod := w.pod(known.Name)
			return w.slurm.up && len(w.jobsOn(known.Name, anyPod)) == 0 && (pod == nil || pod.Registered)
		}, func(name string) {
			w.note("slurm: an administrator deletes the record of %s", name)
			w.loseRecord(w.slurm.nodes[name])
		})
	}},
	{4, func(w *world) {
		w.onNode(func(known *node) bool { return w.slurm.up && known.Flags.HasAny(slurm.FlagDrain|slurm.FlagFail) },
			w.undrain)
	}},
	{2, func(w *world) {
		w.onNode(func(known *node) bool { return w.slurm.up && known.Draining() }, w.reopen)
	}},
	{2, func(w *world) {
		w.onNode(func(known *node) bool { return w.slurm.up && known.Responding() && w.slurmd(known.Name) == nil },
			w.markDown)
	}},
	{1, func(w *world) {
		w.onNode(func(known *node) bool { return w.slurm.up && known.Responding() }, func(name string) {
			w.note("slurm: node %s does not respond for a while", name)
			w.slurm.nodes[name].Flags |= slurm.FlagNotResponding
		})
	}},
	{1, func(w *world) { w.stopSlurmctld() }},
	{1, func(w *world) {
		w.note("slurm: slurmrestd is down")
		w.slurm.noREST = true
	}},
	{3, func(w *world) { w.endOutages() }},
	{1, func(w *world) {
		var lost []string
		for _, name := range sorted(w.slurm.nodes) {
			if w.oneIn(2) {
				lost = append(lost, name)
			}
		}
		w.restart(lost...)
	}},
	{2, func(w *world) { w.pass(time.Duration(w.rand.IntN(10)) * time.Second) }},
	{1, func(w *world) { w.pass(time.Duration(w.rand.IntN(4)) * time.Minute) }},

	// the operator's caches
	{8, (*world).syncPartly},
	{8, func(w *world) { _ = w.poll(false) }},
}

// requests are changes of the NodeSet by users.
var requests = []event{
	{8, func(w *world) { w.scale(w.rand.IntN(6)) }},
	{5, func(w *world) { w.release(pick(w, []fault{works, works, works, neverStarts, crashes, neverRegisters})) }},
	{2, func(w *world) {
		w.edit("maxUnavailable between 1 and 3",
			func(set *plan.Set) { set.Update.MaxUnavailable = 1 + w.rand.IntN(3) })
	}},
	{1, func(w *world) {
		w.edit("update strategy OnDelete, or not", func(set *plan.Set) { set.Update.Replace = !set.Update.Replace })
	}},
	{1, func(w *world) {
		w.edit("another prune policy", func(set *plan.Set) { set.Prune = plan.PrunePolicy(w.rand.IntN(3)) })
	}},
	{1, func(w *world) { w.edit("deletion of the NodeSet", func(set *plan.Set) { set.Deleting = true }) }},
	{3, (*world).recreate},
}

// randomEvent runs a random event.
func (w *world) randomEvent() { w.draw(w.events) }

// draw runs one of some events at random, by their weights.
func (w *world) draw(from []event) {
	w.tick()
	total := 0
	for _, event := range from {
		total += event.weight
	}
	n := w.rand.IntN(total)
	for _, event := range from {
		if n -= event.weight; n < 0 {
			event.do(w)
			return
		}
	}
}

func pick[T any](w *world, from []T) T { return from[w.rand.IntN(len(from))] }

func running(pod *object, box *container) bool { return box.running && !pod.Terminating }

func notTerminating(pod *object, _ *container) bool { return !pod.Terminating }

// onPod runs a function on a random pod that matches a condition.
func (w *world) onPod(is func(*object, *container) bool, do func(*object)) {
	if pods := w.podsThat(is); len(pods) > 0 {
		do(pick(w, pods))
	}
}

// onNode runs a function on a random Slurm node that slurmctld knows and that matches a condition.
func (w *world) onNode(is func(*node) bool, do func(name string)) {
	var names []string
	for _, name := range sorted(w.slurm.nodes) {
		if known := w.slurm.nodes[name]; !known.recordLost && is(known) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		do(pick(w, names))
	}
}

// onJob moves a random job from one state to another.
func (w *world) onJob(from, to string) {
	var ids []int64
	for _, id := range slices.Sorted(maps.Keys(w.slurm.jobs)) {
		if w.slurm.jobs[id].state == from {
			ids = append(ids, id)
		}
	}
	if w.slurm.up && len(ids) > 0 {
		w.setJobState(pick(w, ids), to)
	}
}

// randomJob starts a job on one or two open Slurm nodes.
func (w *world) randomJob() {
	var names []string
	w.onNode(func(known *node) bool { return w.open(known.Name) && w.mayStart(known.Name) },
		func(name string) { names = append(names, name) })
	if w.oneIn(3) {
		w.onNode(func(known *node) bool { return w.open(known.Name) && w.mayStart(known.Name) }, func(name string) {
			if name != names[0] {
				names = append(names, name)
			}
		})
	}
	if len(names) > 0 {
		w.startJob(time.Duration(w.rand.IntN(3))*time.Hour, names...)
	}
}

// drainBySlurm drains a Slurm node as slurmctld does after a failed prolog. Slurm 24.11 keeps an existing reason.
func (w *world) drainBySlurm(name string) {
	w.pass(time.Second)
	known := w.slurm.nodes[name]
	reason := known.Reason
	if reason == "" {
		reason = "Prolog error"
	}
	w.note("slurm: slurmctld drains %s: %s", name, reason)
	w.closedByOthers(name, reason)
	known.Flags |= slurm.FlagDrain
}

// setDown sets a Slurm node to DOWN as an administrator, until its slurmd registers again. Its jobs are lost.
func (w *world) setDown(name string) {
	w.pass(time.Second)
	w.note("slurm: an administrator sets %s to DOWN: bad DIMM", name)
	known := w.slurm.nodes[name]
	known.State = slurm.StateDown
	if !known.Draining() {
		w.closedByOthers(name, "bad DIMM")
	}
	for _, id := range w.jobsOn(name, anyPod) {
		delete(w.slurm.jobs, id)
	}
}

// reopen lifts a drain until a job has started and is suspended, which no record of a Slurm node shows.
func (w *world) reopen(name string) {
	w.undrain(name)
	if w.open(name) && w.mayStart(name) {
		w.setJobState(w.startJob(time.Hour, name), "SUSPENDED")
	}
	w.drain(name, "broken fan")
}

// syncPartly moves a part of the operator's cache some versions ahead, or brings all of it up to date.
func (w *world) syncPartly() {
	if w.oneIn(3) {
		w.syncCache()
		return
	}
	advance(&w.kube.set, w.rand.IntN(2))
	for _, name := range w.kube.names {
		advance(w.kube.pods[name], w.rand.IntN(3))
	}
	for _, name := range sorted(w.kube.kubernetesNodes) {
		advance(w.kube.kubernetesNodes[name], w.rand.IntN(2))
	}
}

// stopSlurmctld stops slurmctld; jobs keep running.
func (w *world) stopSlurmctld() {
	w.note("slurm: slurmctld is down")
	w.slurm.up = false
}

// endOutages starts slurmctld and slurmrestd again.
func (w *world) endOutages() {
	w.slurm.noREST = false
	if !w.slurm.up {
		w.restart()
	}
}

// crashSlurmd crashes the slurmd of a pod; the kubelet restarts it.
func (w *world) crashSlurmd(pod *object) {
	w.note("kubernetes: the slurmd of %s crashes", pod.Name)
	w.stop(pod.UID)
}

// exitPod makes all containers of a pod exit for good.
func (w *world) exitPod(pod *object) {
	w.note("kubernetes: %s exits for good", pod.Name)
	w.stop(pod.UID)
	w.kube.kubelets[pod.UID].ended = true
}

func (w *world) deleteByOthers(pod *object) {
	w.note("a user deletes %s", pod.Name)
	w.remove(pod)
}

func (w *world) cordonPod(name string, cordoned bool) {
	w.note("a user sets cordon=%v on pod %s", cordoned, name)
	w.write(w.pod(name), func(next *object) {
		switch marked := next.Mark == plan.Marked; {
		case marked && !cordoned:
			next.Mark = plan.PartlyMarked
		case marked: // the annotation has this value already
		case next.Mark == plan.PartlyMarked && cordoned:
			next.Mark = plan.Marked
		case next.Mark == plan.PartlyMarked:
		case cordoned:
			next.Cordoned, next.Mark = true, plan.MarkedByOthers
		default:
			next.Cordoned, next.Mark = false, plan.Unmarked
		}
	})
}

func (w *world) cordon(kubernetesNode string, cordoned bool) {
	w.note("a user sets cordon=%v on Kubernetes node %s", cordoned, kubernetesNode)
	next := *w.kubernetesNode(kubernetesNode)
	if next.Drain = ""; cordoned {
		next.Drain = "Kubernetes node " + kubernetesNode + " is cordoned"
	}
	w.kube.kubernetesNodes[kubernetesNode].put(&next)
}

// selectNode makes the node selector of a NodeSet in DaemonSet mode match a Kubernetes node, or not.
func (w *world) selectNode(kubernetesNode string, selected bool) {
	w.note("Kubernetes node %s matches the node selector: %v", kubernetesNode, selected)
	next := *w.kubernetesNode(kubernetesNode)
	next.Wanted, next.Stays, next.Selected = selected, selected, selected
	w.kube.kubernetesNodes[kubernetesNode].put(&next)
}

// taint adds a NoSchedule taint to a Kubernetes node, or removes it.
func (w *world) taint(kubernetesNode string) {
	next := *w.kubernetesNode(kubernetesNode)
	if next.Selected {
		next.Wanted = !next.Wanted
		w.note("Kubernetes node %s has a NoSchedule taint: %v", kubernetesNode, !next.Wanted)
		w.kube.kubernetesNodes[kubernetesNode].put(&next)
	}
}

// toggleNodeObject deletes a Node object, whose kubelet keeps running, or makes the kubelet register it again.
func (w *world) toggleNodeObject(kubernetesNode string) {
	if w.kube.kubernetesNodes[kubernetesNode].newest() == nil {
		w.note("Kubernetes node %s registers again", kubernetesNode)
		w.kube.kubernetesNodes[kubernetesNode].put(w.kubernetesNode(kubernetesNode))
		return
	}
	w.note("the Node object of Kubernetes node %s is deleted", kubernetesNode)
	w.kube.kubernetesNodes[kubernetesNode].put(nil)
}

// kubernetesNode returns a Kubernetes node; if its object is deleted, the last version.
func (w *world) kubernetesNode(name string) *plan.KubernetesNode {
	versions := w.kube.kubernetesNodes[name].versions
	for i := len(versions); i > 0; i-- {
		if is := at(versions, i); is != nil {
			return is
		}
	}
	return &plan.KubernetesNode{}
}

// edit edits the NodeSet, unless it is deleted.
func (w *world) edit(what string, edit func(*plan.Set)) {
	if w.set() != nil {
		w.change(edit)
		w.note("a user requests: %s", what)
	}
}

func (w *world) scale(replicas int) {
	w.edit(fmt.Sprintf("replicas: %d", replicas), func(set *plan.Set) { set.Replicas = replicas })
}

// release requests a new revision, which may have a fault.
func (w *world) release(how fault) {
	if w.set() == nil {
		return
	}
	revision := fmt.Sprintf("r%d", len(w.kube.faulty)+2)
	w.kube.faulty[revision] = how
	w.edit(fmt.Sprintf("revision %s, which %s", revision, how), func(set *plan.Set) { set.Revision = revision })
}

// recreate re-creates a deleted NodeSet.
func (w *world) recreate() {
	if w.set() != nil {
		return
	}
	next := *w.kube.set.versions[len(w.kube.set.versions)-2]
	next.Deleting, next.Waived, next.UID = false, false, fmt.Sprintf("set-%d", w.count)
	w.kube.set.put(&next)
	w.note("a user re-creates the NodeSet")
}
