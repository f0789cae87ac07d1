package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// An event is something that others do, and how often compared to the rest. It does nothing when it does not apply.
type event struct {
	weight int
	do     func(*world)
}

// events are what happens without the operator.
var events = []event{
	// the scheduler and the kubelets
	{8, func(w *world) {
		w.onPod(func(pod *object, _ *container) bool { return pod.Unplaced && !pod.Terminating },
			func(pod *object) { w.place(pod, w.machineFor(pod)) })
	}},
	{8, func(w *world) { w.onPod(w.startable, w.start) }},
	{12, func(w *world) { w.onPod(unreported, w.report) }},
	{6, func(w *world) {
		w.onPod(func(pod *object, _ *container) bool { return pod.Terminating }, func(pod *object) {
			w.note("kubernetes: %s is gone", pod.Name)
			w.gone(pod)
		})
	}},
	{1, func(w *world) { w.onPod(running, w.crashSlurmd) }},
	{1, func(w *world) { w.onPod(running, w.endPod) }},
	{1, func(w *world) { w.onPod(notTerminating, w.deleteByOthers) }},

	// people, about pods and Kubernetes nodes
	{1, func(w *world) { w.onPod(notTerminating, func(pod *object) { w.cordonPod(pod.Name, !pod.Cordoned) }) }},
	{1, func(w *world) {
		w.onPod(notTerminating, func(pod *object) {
			cost := w.rand.Int32N(3)
			w.note("a person gives %s the deletion cost %d", pod.Name, cost)
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
			w.want(name, !w.kubernetesNode(name).Selected)
		}
	}},
	{1, func(w *world) {
		if set := w.set(); set != nil && set.DaemonSet {
			w.taint(pick(w, sorted(w.kube.kubernetesNodes)))
		}
	}},
	{1, func(w *world) {
		if set := w.set(); set != nil && set.DaemonSet {
			w.forgetKubernetesNode(pick(w, sorted(w.kube.kubernetesNodes)))
		}
	}},

	// Slurm
	{10, func(w *world) {
		if w.slurm.up {
			w.onPod(w.unregistered, w.register)
		}
	}},
	{12, (*world).someJob},
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
		w.onNode(func(known *node) bool { return w.slurm.up && known.State == slurm.StateIdle }, w.down)
	}},
	{2, func(w *world) { // not before the operator could clear what is left of its own reason
		w.onNode(func(known *node) bool {
			return w.slurm.up && !known.Closed() && !known.stale
		}, w.drainItself)
	}},
	{1, func(w *world) {
		w.onNode(func(known *node) bool { // that the operator has had the time to see
			pod := w.pod(known.Name)
			return w.slurm.up && len(w.jobsOn(known.Name, anyPod)) == 0 && (pod == nil || pod.Registered)
		}, func(name string) {
			w.note("slurm: an administrator deletes the record of %s", name)
			w.forgetRecord(w.slurm.nodes[name])
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
			w.lost)
	}},
	{1, func(w *world) {
		w.onNode(func(known *node) bool { return w.slurm.up && known.Responding() }, func(name string) {
			w.note("slurm: node %s does not respond for a while", name)
			w.slurm.nodes[name].Flags |= slurm.FlagNotResponding
		})
	}},
	{1, func(w *world) { w.stopSlurmctld() }},
	{1, func(w *world) {
		w.note("slurm: slurmrestd is away")
		w.slurm.unreachable = true
	}},
	{3, func(w *world) { w.endOutages() }},
	{1, func(w *world) {
		var forgets []string
		for _, name := range sorted(w.slurm.nodes) {
			if w.chance(2) {
				forgets = append(forgets, name)
			}
		}
		w.restart(forgets...)
	}},
	{2, func(w *world) { w.pass(time.Duration(w.rand.IntN(10)) * time.Second) }},
	{1, func(w *world) { w.pass(time.Duration(w.rand.IntN(4)) * time.Minute) }},

	// what the operator sees
	{8, (*world).seeSome},
	{8, func(w *world) { _ = w.look(false) }},
}

// wishes are what people ask of the NodeSet.
var wishes = []event{
	{8, func(w *world) { w.scale(w.rand.IntN(6)) }},
	{5, func(w *world) { w.release(pick(w, []fault{works, works, works, neverStarts, crashes, neverRegisters})) }},
	{2, func(w *world) {
		w.edit("at most 1 to 3 may be unavailable",
			func(set *plan.Set) { set.Update.MaxUnavailable = 1 + w.rand.IntN(3) })
	}},
	{1, func(w *world) {
		w.edit("pods are replaced by hand, or not", func(set *plan.Set) { set.Update.Replace = !set.Update.Replace })
	}},
	{1, func(w *world) {
		w.edit("another policy for records", func(set *plan.Set) { set.Prune = plan.PrunePolicy(w.rand.IntN(3)) })
	}},
	{1, func(w *world) { w.edit("the NodeSet is deleted", func(set *plan.Set) { set.Deleting = true }) }},
	{3, (*world).recreate},
}

// happen lets one thing happen.
func (w *world) happen() { w.draw(w.events) }

// draw does one of some events.
func (w *world) draw(from []event) {
	w.tick()
	total := 0
	for _, event := range from {
		total += event.weight
	}
	lot := w.rand.IntN(total)
	for _, event := range from {
		if lot -= event.weight; lot < 0 {
			event.do(w)
			return
		}
	}
}

func pick[T any](w *world, from []T) T { return from[w.rand.IntN(len(from))] }

func running(pod *object, box *container) bool { return box.running && !pod.Terminating }

func notTerminating(pod *object, _ *container) bool { return !pod.Terminating }

// onPod does something to one of the pods that a condition holds for.
func (w *world) onPod(is func(*object, *container) bool, do func(*object)) {
	if pods := w.podsThat(is); len(pods) > 0 {
		do(pick(w, pods))
	}
}

// onNode does something to one of the nodes that slurmctld knows and that a condition holds for.
func (w *world) onNode(is func(*node) bool, do func(name string)) {
	var names []string
	for _, name := range sorted(w.slurm.nodes) {
		if known := w.slurm.nodes[name]; !known.forgotten && is(known) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		do(pick(w, names))
	}
}

// onJob moves one of the jobs in a state to another.
func (w *world) onJob(from, to string) {
	var ids []int64
	for _, id := range slices.Sorted(maps.Keys(w.slurm.jobs)) {
		if w.slurm.jobs[id].state == from {
			ids = append(ids, id)
		}
	}
	if w.slurm.up && len(ids) > 0 {
		w.become(pick(w, ids), to)
	}
}

// someJob starts a job on one or two nodes that can take it.
func (w *world) someJob() {
	var names []string
	w.onNode(func(known *node) bool { return w.open(known.Name) && w.mayStart(known.Name) },
		func(name string) { names = append(names, name) })
	if w.chance(3) {
		w.onNode(func(known *node) bool { return w.open(known.Name) && w.mayStart(known.Name) }, func(name string) {
			if name != names[0] {
				names = append(names, name)
			}
		})
	}
	if len(names) > 0 {
		w.begin(time.Duration(w.rand.IntN(3))*time.Hour, names...)
	}
}

// drainItself is Slurm's own drain, as after a prolog that failed. 24.11 keeps the reason that is there.
func (w *world) drainItself(name string) {
	w.pass(time.Second)
	known := w.slurm.nodes[name]
	reason := known.Reason
	if reason == "" {
		reason = "Prolog error"
	}
	w.note("slurm: slurmctld drains %s: %s", name, reason)
	w.closed(name, reason)
	known.Flags |= slurm.FlagDrain
}

// down sets a node down, which ends its jobs, until its slurmd registers again.
func (w *world) down(name string) {
	w.pass(time.Second)
	w.note("slurm: an administrator sets %s down: bad DIMM", name)
	known := w.slurm.nodes[name]
	known.State = slurm.StateDown
	if !known.Draining() {
		w.closed(name, "bad DIMM")
	}
	for _, id := range w.jobsOn(name, anyPod) {
		delete(w.slurm.jobs, id)
	}
}

// reopen lifts a drain for as long as it takes a job to begin and to be suspended, which no record of a node shows.
func (w *world) reopen(name string) {
	w.undrain(name)
	if w.open(name) && w.mayStart(name) {
		w.become(w.begin(time.Hour, name), "SUSPENDED")
	}
	w.drain(name, "broken fan")
}

// seeSome brings a part of the operator's cache a step closer to the truth, or all of it.
func (w *world) seeSome() {
	if w.chance(3) {
		w.seeAll()
		return
	}
	see(&w.kube.set, w.rand.IntN(2))
	for _, name := range w.kube.names {
		see(w.kube.pods[name], w.rand.IntN(3))
	}
	for _, name := range sorted(w.kube.kubernetesNodes) {
		see(w.kube.kubernetesNodes[name], w.rand.IntN(2))
	}
}

// stopSlurmctld takes slurmctld away; jobs go on.
func (w *world) stopSlurmctld() {
	w.note("slurm: slurmctld is away")
	w.slurm.up = false
}

// endOutages brings slurmctld and slurmrestd back.
func (w *world) endOutages() {
	w.slurm.unreachable = false
	if !w.slurm.up {
		w.restart()
	}
}

// crashSlurmd ends the slurmd of a pod, which the kubelet starts again.
func (w *world) crashSlurmd(pod *object) {
	w.note("kubernetes: the slurmd of %s crashes", pod.Name)
	w.stop(pod.UID)
}

// endPod ends a pod for good.
func (w *world) endPod(pod *object) {
	w.note("kubernetes: %s ends for good", pod.Name)
	w.stop(pod.UID)
	w.kube.kubelets[pod.UID].ended = true
}

func (w *world) deleteByOthers(pod *object) {
	w.note("a person deletes %s", pod.Name)
	w.remove(pod)
}

func (w *world) cordonPod(name string, cordoned bool) {
	w.note("a person cordons pod %s: %v", name, cordoned)
	w.write(w.pod(name), func(next *object) { next.Cordoned = cordoned })
}

func (w *world) cordon(kubernetesNode string, cordoned bool) {
	w.note("a person cordons Kubernetes node %s: %v", kubernetesNode, cordoned)
	next := *w.kubernetesNode(kubernetesNode)
	if next.Drain = ""; cordoned {
		next.Drain = "Kubernetes node " + kubernetesNode + " is cordoned"
	}
	w.kube.kubernetesNodes[kubernetesNode].put(&next)
}

// want takes a Kubernetes node into the selection of a NodeSet in DaemonSet mode, or out of it.
func (w *world) want(kubernetesNode string, wanted bool) {
	w.note("Kubernetes node %s is to have a pod: %v", kubernetesNode, wanted)
	next := *w.kubernetesNode(kubernetesNode)
	next.Wanted, next.Stays, next.Selected = wanted, wanted, wanted
	w.kube.kubernetesNodes[kubernetesNode].put(&next)
}

// taint puts a NoSchedule taint on a Kubernetes node, or removes it.
func (w *world) taint(kubernetesNode string) {
	next := *w.kubernetesNode(kubernetesNode)
	if next.Selected {
		next.Wanted = !next.Wanted
		w.note("Kubernetes node %s has a taint that the pods do not tolerate: %v", kubernetesNode, !next.Wanted)
		w.kube.kubernetesNodes[kubernetesNode].put(&next)
	}
}

// forgetMachine deletes a Node object, whose kubelet goes on, or lets it register again.
func (w *world) forgetKubernetesNode(kubernetesNode string) {
	if w.kube.kubernetesNodes[kubernetesNode].newest() == nil {
		w.note("Kubernetes node %s registers again", kubernetesNode)
		w.kube.kubernetesNodes[kubernetesNode].put(w.kubernetesNode(kubernetesNode))
		return
	}
	w.note("the Node object of Kubernetes node %s is deleted", kubernetesNode)
	w.kube.kubernetesNodes[kubernetesNode].put(nil)
}

// Kubernetes node is a Kubernetes node as it is, or as it was when its object was deleted.
func (w *world) kubernetesNode(name string) *plan.KubernetesNode {
	versions := w.kube.kubernetesNodes[name].versions
	for i := len(versions); i > 0; i-- {
		if is := at(versions, i); is != nil {
			return is
		}
	}
	return &plan.KubernetesNode{}
}

// edit changes the spec, unless there is none.
func (w *world) edit(what string, edit func(*plan.Set)) {
	if w.set() != nil {
		w.change(edit)
		w.note("a person asks: %s", what)
	}
}

func (w *world) scale(replicas int) {
	w.edit(fmt.Sprintf("replicas: %d", replicas), func(set *plan.Set) { set.Replicas = replicas })
}

// release makes a new revision that works, or does not.
func (w *world) release(how fault) {
	if w.set() == nil {
		return
	}
	revision := fmt.Sprintf("r%d", len(w.kube.faulty)+2)
	w.kube.faulty[revision] = how
	w.edit(fmt.Sprintf("revision %s, which %s", revision, how), func(set *plan.Set) { set.Revision = revision })
}

// recreate makes a NodeSet anew that was deleted.
func (w *world) recreate() {
	if w.set() != nil {
		return
	}
	next := *w.kube.set.versions[len(w.kube.set.versions)-2]
	next.Deleting, next.Waived, next.UID = false, false, fmt.Sprintf("set-%d", w.count)
	w.kube.set.put(&next)
	w.note("a person creates the NodeSet again")
}
