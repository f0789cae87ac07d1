package plan_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// An operator is a minimal shell around package plan: observe, plan, act.
type operator struct {
	history plan.DrainHistory
	// expects has, by pod, the version that the cache must show before the next plan.
	expects map[string]int
	// versions has the resourceVersions of the observed pods.
	versions map[string]int
	// polled identifies the poll of Slurm that the current plan is based on, and basis is its snapshot; planned is
	// when the plan was made.
	polled  int
	basis   *slurm.Snapshot
	planned time.Time
	// present is how many pods existed when the plan was started, in the API server or in the cache.
	present int
	// setSeen and kubernetesNodesSeen are the versions of the NodeSet and of the Kubernetes nodes that the current plan
	// is based on.
	setSeen             int
	kubernetesNodesSeen map[string]int
}

// startOperator starts an operator without history and expectations. Its cache is not older than before.
func (w *world) startOperator() {
	w.operator = operator{expects: map[string]int{}, versions: map[string]int{}}
	w.mirror = mirror{}
}

// reconcile runs one reconcile of the operator.
func (w *world) reconcile() {
	w.wake = time.Time{}
	for name, version := range w.operator.expects {
		if w.kube.pods[name].seen < version {
			return
		}
	}
	if w.kube.set.cached() == nil {
		return
	}
	snapshot := w.observe()
	next := w.plan(snapshot)
	if next.NeedsRefresh && w.mirror.answers && w.reread(next, snapshot) == nil {
		w.refresh(snapshot)
		snapshot.JustRead = true
		next = w.plan(snapshot)
	}
	w.tracePlan(next)
	w.wake = next.Wake
	if soon := w.now.Add(time.Second); next.NeedsRefresh && w.mirror.answers &&
		(w.wake.IsZero() || soon.Before(w.wake)) {
		w.wake = soon // the snapshot shows something that only the next one can prove
	}
	w.act(snapshot, next)
	w.finishDeletion()
}

// reread reads Slurm for a plan: all of it, or only the Slurm nodes that the plan asks for.
func (w *world) reread(next plan.Plan, snapshot *plan.Snapshot) error {
	if next.Refresh == nil || w.oneIn(2) {
		return w.poll(true)
	}
	snapshot.Reread = map[string]bool{}
	for _, name := range next.Refresh {
		snapshot.Reread[name] = true
	}
	return w.pollNodes(next.Refresh)
}

// observe returns everything that the operator knows.
func (w *world) observe() *plan.Snapshot {
	snapshot := &plan.Snapshot{Set: *w.kube.set.cached(), KubernetesNodes: map[string]plan.KubernetesNode{}}
	w.operator.setSeen, w.operator.kubernetesNodesSeen = w.kube.set.seen, map[string]int{}
	for _, name := range w.kube.names {
		if pod := w.kube.pods[name].cached(); pod != nil {
			snapshot.Pods = append(snapshot.Pods, pod.Pod)
			w.operator.versions[name] = pod.resourceVersion
		}
	}
	for name, kubernetesNode := range w.kube.kubernetesNodes {
		w.operator.kubernetesNodesSeen[name] = kubernetesNode.seen
		if known := kubernetesNode.cached(); known != nil {
			snapshot.KubernetesNodes[name] = *known
		}
	}
	w.refresh(snapshot)
	return snapshot
}

// plan makes a plan, and records what it is based on.
func (w *world) plan(snapshot *plan.Snapshot) plan.Plan {
	w.operator.polled = w.mirror.polled
	w.operator.basis, w.operator.planned = snapshot.Slurm, w.now
	next := plan.Next(snapshot)
	w.checkBudget(snapshot, next)
	if w.plans++; w.plans%alarmChecks == 0 {
		if missing := missingAlarm(snapshot); missing != "" {
			w.violate("I25: the plan waits without an alarm: it changes %s", missing)
		}
	}
	return next
}

// checkBudget checks that no more Slurm nodes are drained for an update than may be unavailable.
func (w *world) checkBudget(snapshot *plan.Snapshot, next plan.Plan) {
	if snapshot.Slurm == nil {
		return
	}
	drained, more := map[string]bool{}, false
	for i := range snapshot.Pods {
		record, known := snapshot.Slurm.Node(snapshot.Pods[i].SlurmNode)
		if known && record.Draining() && record.Reason == slurm.OurReason("update") && !snapshot.Pods[i].Terminating {
			drained[record.Name] = true
		}
	}
	for _, action := range next.Actions {
		if action.Kind != plan.Drain && action.Kind != plan.Undrain {
			continue
		}
		delete(drained, action.SlurmNode)
		if record, known := snapshot.Slurm.Node(action.SlurmNode); action.Cause == plan.Updating {
			drained[action.SlurmNode] = true
			more = more || !known || !record.Draining()
		}
	}
	if more && len(drained) > snapshot.Set.Update.MaxUnavailable {
		w.violate("budget: %d Slurm nodes are drained for the update, and %d may be unavailable", len(drained),
			snapshot.Set.Update.MaxUnavailable)
	}
}

// refresh updates the Slurm state of a snapshot from the mirror.
func (w *world) refresh(snapshot *plan.Snapshot) {
	nodes := make([]string, len(snapshot.Pods))
	for i := range snapshot.Pods {
		nodes[i] = snapshot.Pods[i].SlurmNode
	}
	w.operator.history.Observe(w.mirror.current, nodes)
	snapshot.Now, snapshot.Slurm, snapshot.Answers = w.now, w.mirror.current, w.mirror.answers
	snapshot.DrainedSince = w.operator.history.Since()
}

// tracePlan adds a plan to the trace if it differs from the last one.
func (w *world) tracePlan(next plan.Plan) {
	if w.trace == nil {
		return
	}
	if text := next.String(); text != w.lastPlan {
		w.lastPlan = text
		if text == "" {
			text = "nothing to do\n"
		}
		fmt.Fprintf(w.trace, "    plan: %s\n", strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n          "))
	}
}

// act carries out a plan.
func (w *world) act(snapshot *plan.Snapshot, next plan.Plan) {
	w.operator.present = max(len(w.podsThat(func(*object, *container) bool { return true })), len(snapshot.Pods))
	drains := map[string][]plan.Action{}
	var undrains, stale, prunes []string
	for _, action := range next.Actions {
		switch action.Kind {
		case plan.Undrain:
			undrains = append(undrains, action.SlurmNode)
		case plan.ClearReason:
			stale = append(stale, action.SlurmNode)
		case plan.Drain:
			drains[action.Why] = append(drains[action.Why], action)
		case plan.Prune:
			prunes = append(prunes, action.SlurmNode)
		case plan.MarkPod, plan.UnmarkPod, plan.Delete, plan.Create,
			plan.PowerUp, plan.PowerDown, plan.ForcePowerDown, plan.Resume, plan.RequestCapacity,
			plan.Withdraw: // the model of elastic NodeSets has these
		}
	}
	if len(undrains) > 0 {
		w.yield()
		_ = w.update(undrains, w.lift)
		w.operator.history.Acknowledged(undrains, w.tick()) // even if the request failed
	}
	if len(stale) > 0 {
		w.yield()
		_ = w.update(stale, func(known *node) error {
			w.wroteDrain(known)
			known.Reason, known.stale = slurm.NoReason, false
			return nil
		})
	}
	for _, why := range slices.Sorted(maps.Keys(drains)) {
		w.drainNodes(drains[why])
	}
	for _, action := range next.Actions {
		if action.Kind == plan.MarkPod || action.Kind == plan.UnmarkPod {
			w.yield()
			w.markPod(action)
		}
	}
	for _, action := range next.Actions {
		if action.Kind == plan.Delete {
			w.yield()
			w.deletePod(snapshot, action)
		}
	}
	if len(prunes) > 0 {
		w.yield()
		_ = w.update(prunes, w.prune)
	}
	for _, action := range next.Actions {
		if action.Kind == plan.Create {
			w.yield()
			w.createPod(snapshot, action.Pod)
		}
	}
}

// drainNodes drains Slurm nodes for one reason, in one request.
func (w *world) drainNodes(actions []plan.Action) {
	w.yield()
	nodes := make([]string, len(actions))
	for i, action := range actions {
		nodes[i] = action.SlurmNode
	}
	err := w.update(nodes, func(known *node) error {
		w.wroteDrain(known)
		known.Flags = known.Flags&^slurm.FlagFail | slurm.FlagDrain
		known.Reason, known.ReasonAt, known.foreign, known.stale = actions[0].Why, w.now.Truncate(time.Second), 0, false
		return nil
	})
	if err == nil {
		w.operator.history.Acknowledged(nodes, w.tick())
	}
}

// lift lifts a drain.
func (w *world) lift(known *node) error {
	w.wroteDrain(known)
	known.Flags &^= slurm.FlagDrain | slurm.FlagFail
	known.Reason, known.foreign = slurm.NoReason, 0
	return nil
}

// prune deletes a record. Slurm refuses to delete one with jobs. One that is down may be deleted: it has no pod.
func (w *world) prune(known *node) error {
	if len(w.jobsOn(known.Name, anyPod)) > 0 {
		return errors.New("node is busy")
	}
	if known.Flags.HasAny(slurm.FlagDrain | slurm.FlagFail) {
		w.wroteDrain(known)
	}
	delete(w.slurm.nodes, known.Name)
	return nil
}

// wroteDrain checks I3 and I18: the operator changes no Slurm node that others had closed before its last poll, or
// whose closing it missed because that poll is too old.
func (w *world) wroteDrain(known *node) {
	tooOld := w.operator.basis == nil ||
		w.operator.planned.Sub(w.operator.basis.NodeAsOf(known.Name)) >= maxSnapshotAge
	if known.Closed() && known.foreign > 0 && (known.foreign < w.operator.polled || tooOld) {
		w.violate("I18: the operator changed the state %v of %s, which others had set (%s)", known.StateNames(), known.Name,
			known.Reason)
	}
}

// update sends one bulk request to Slurm. It can fail without an effect, or with a partial or full one.
func (w *world) update(names []string, change func(*node) error) error {
	if w.unreachable() || w.oneIn(20) {
		return errUnreachable
	}
	var failure error
	for _, name := range names {
		if known := w.slurm.nodes[name]; known == nil || known.recordLost {
			failure = errors.New("no such node")
		}
	}
	if failure != nil && w.oneIn(2) {
		return failure // a newer Slurm then changes nothing, an older one all other nodes
	}
	for _, name := range names {
		if known := w.slurm.nodes[name]; known != nil && !known.recordLost {
			failure = errors.Join(failure, change(known))
		}
	}
	if w.oneIn(20) {
		return errUnreachable // the answer is lost
	}
	return failure
}

// markPod sets or removes the operator's mark, unless the pod has changed since the plan.
func (w *world) markPod(action plan.Action) {
	pod := w.pod(action.Pod.Name)
	if pod == nil || pod.UID != action.Pod.UID || pod.resourceVersion != w.operator.versions[pod.Name] || w.oneIn(20) {
		return // conflict, or the API server is unreachable
	}
	if pod.Mark == plan.MarkedByOthers {
		w.violate("I11: the operator changes the cordon of %s, which others had set", pod.Name)
	}
	w.write(pod, func(next *object) {
		if next.Mark = plan.Unmarked; action.Kind == plan.MarkPod {
			next.Mark = plan.Marked
		}
	})
	w.operator.expects[pod.Name] = len(w.kube.pods[pod.Name].versions)
}

// deletePod evaluates the deletion rule again, and deletes a pod unless it has changed since the plan.
func (w *world) deletePod(snapshot *plan.Snapshot, action plan.Action) {
	w.refresh(snapshot)
	if snapshot.Release(action.Pod).Kind != plan.NotHeld {
		return
	}
	pod := w.pod(action.Pod.Name)
	if pod == nil || pod.UID != action.Pod.UID || pod.resourceVersion != w.operator.versions[pod.Name] {
		return // conflict
	}
	w.checkDelete(snapshot, pod, action)
	if w.oneIn(20) {
		return // the API server is unreachable
	}
	w.remove(pod)
	w.operator.expects[pod.Name] = len(w.kube.pods[pod.Name].versions)
	if action.ScaledIn {
		delete(w.kube.pvcs, pod.Name)
	}
}

// checkDelete checks the invariants of deletions.
func (w *world) checkDelete(snapshot *plan.Snapshot, pod *object, action plan.Action) {
	if ids := w.jobsIn(pod.UID); len(ids) > 0 && !pod.Exited && !snapshot.Set.Waived {
		w.violate("I1: pod %s was deleted (%s) while job %d was %s", pod.Name, action.Cause, ids[0],
			w.slurm.jobs[ids[0]].state)
	}
	if pod.Cordoned && action.Cause == plan.Updating {
		w.violate("I11: cordoned pod %s was replaced, and its annotation is lost", pod.Name)
	}
	if action.ScaledIn && !w.isScaledIn(pod) {
		w.violate("I10: the PVCs of %s are deleted although it was not scaled in", pod.Name)
	}
}

// jobsIn returns the jobs with processes in a pod, whatever the name of its Slurm node.
func (w *world) jobsIn(uid string) []int64 {
	var ids []int64
	for _, id := range slices.Sorted(maps.Keys(w.slurm.jobs)) {
		if slices.Contains(slices.Collect(maps.Values(w.slurm.jobs[id].pods)), uid) {
			ids = append(ids, id)
		}
	}
	return ids
}

// isScaledIn reports whether a user has requested fewer pods, or excluded the Kubernetes node of this one from the
// selection. It considers all requests since the cached versions, not only what the plan is based on.
func (w *world) isScaledIn(pod *object) bool {
	if w.set() == nil {
		return false
	}
	for i := w.operator.setSeen; i <= len(w.kube.set.versions); i++ {
		set := at(w.kube.set.versions, i)
		if set == nil || set.Deleting {
			continue
		}
		if !set.DaemonSet && w.operator.present > set.Replicas {
			return true
		}
		kubernetesNode := w.kube.kubernetesNodes[pod.KubernetesNode]
		for j := w.operator.kubernetesNodesSeen[pod.KubernetesNode]; set.DaemonSet &&
			j <= len(kubernetesNode.versions); j++ {
			if is := at(kubernetesNode.versions, j); is != nil && !is.Selected {
				return true
			}
		}
	}
	return false
}

// createPod creates a pod with the name that follows from its ordinal or Kubernetes node.
func (w *world) createPod(snapshot *plan.Snapshot, pod *plan.Pod) {
	created := *pod
	if created.Name = fmt.Sprintf("%s-%d", setName, pod.Ordinal); pod.Ordinal < 0 {
		created.Name = setName + "-" + pod.KubernetesNode
	}
	created.SlurmNode, created.Revision, created.Named = created.Name, snapshot.Set.Revision, !w.hostNetwork
	if w.oneIn(20) || w.create(created) != nil {
		return
	}
	w.operator.expects[created.Name] = len(w.kube.pods[created.Name].versions)
	w.checkDuplicates()
}

// checkDuplicates checks I2: no ordinal, Kubernetes node or Slurm node has two pods.
func (w *world) checkDuplicates() {
	nodes, places := map[string]bool{}, map[string]bool{}
	for _, pod := range w.podsThat(func(*object, *container) bool { return true }) {
		place := strconv.Itoa(pod.Ordinal)
		if pod.Ordinal < 0 {
			place = pod.KubernetesNode
		}
		if nodes[pod.SlurmNode] || places[place] {
			w.violate("I2: two pods for Slurm node %s, or for ordinal or Kubernetes node %s", pod.SlurmNode, place)
		}
		nodes[pod.SlurmNode], places[place] = true, true
	}
}

// finishDeletion removes a NodeSet that is being deleted and has no pods left.
func (w *world) finishDeletion() {
	set := w.kube.set.cached()
	if set == nil || !set.Deleting || len(w.podsThat(func(*object, *container) bool { return true })) > 0 {
		return
	}
	if w.kube.set.newest() == set {
		w.note("kubernetes: the NodeSet is removed")
		w.kube.set.put(nil)
	}
}
