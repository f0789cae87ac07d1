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

// An operator is the shell around the plan, as thin as it can be: observe, plan, act.
type operator struct {
	history plan.DrainHistory
	// expects has, by pod, the version that the cache must show before anything is decided.
	expects map[string]int
	// versions has the resourceVersions of the pods that were observed.
	versions map[string]int
	// looked is the look at Slurm that the plan at hand rests on; tooOld says that it was too old for any.
	looked int
	tooOld bool
	// present is how many pods there were when the plan began to be carried out, really or in the cache.
	present int
	// setSeen and machinesSeen are the versions of the NodeSet and of the Kubernetes nodes that the plan at hand rests
	// on.
	setSeen             int
	kubernetesNodesSeen map[string]int
}

// startOperator makes an operator that has seen and expects nothing. Its cache is as fresh as the old one's, or
// fresher.
func (w *world) startOperator() {
	w.operator = operator{expects: map[string]int{}, versions: map[string]int{}}
	w.mirror = mirror{}
}

// reconcile is one turn of the operator.
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
	if next.NeedsRefresh && w.mirror.answers && w.look(true) == nil {
		w.glance(snapshot)
		snapshot.JustRead = true
		next = w.plan(snapshot)
	}
	w.tell(next)
	w.wake = next.Wake
	if soon := w.now.Add(time.Second); next.NeedsRefresh && w.mirror.answers &&
		(w.wake.IsZero() || soon.Before(w.wake)) {
		w.wake = soon // the look has shown something that only the next one can prove
	}
	w.act(snapshot, next)
	w.finish()
}

// observe is all that the operator knows.
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
	w.glance(snapshot)
	return snapshot
}

// plan makes a plan, and notes what it rests on.
func (w *world) plan(snapshot *plan.Snapshot) plan.Plan {
	w.operator.looked = w.mirror.looked
	w.operator.tooOld = snapshot.Slurm == nil || w.now.Sub(snapshot.Slurm.NodesAsOf) >= maxSnapshotAge
	next := plan.Next(snapshot)
	w.checkBudget(snapshot, next)
	return next
}

// checkBudget checks that no more nodes are drained for an update than may be unavailable.
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
		w.violate("budget: %d nodes are drained for the update, and %d may be unavailable", len(drained),
			snapshot.Set.Update.MaxUnavailable)
	}
}

// glance brings what a snapshot knows of Slurm up to date.
func (w *world) glance(snapshot *plan.Snapshot) {
	nodes := make([]string, len(snapshot.Pods))
	for i := range snapshot.Pods {
		nodes[i] = snapshot.Pods[i].SlurmNode
	}
	w.operator.history.Observe(w.mirror.current, nodes)
	snapshot.Now, snapshot.Slurm, snapshot.Answers = w.now, w.mirror.current, w.mirror.answers
	snapshot.DrainedSince = w.operator.history.Since()
}

// tell notes a plan down, when it is another one than before.
func (w *world) tell(next plan.Plan) {
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
		case plan.Delete, plan.Create:
		}
	}
	if len(undrains) > 0 {
		w.yield()
		_ = w.update(undrains, w.lift)
		w.operator.history.Acknowledged(undrains, w.tick()) // whether it has failed or not
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
		if action.Kind == plan.Delete {
			w.yield()
			w.deletePod(snapshot, action)
		}
	}
	if len(prunes) > 0 {
		w.yield()
		_ = w.update(prunes, w.forget)
	}
	for _, action := range next.Actions {
		if action.Kind == plan.Create {
			w.yield()
			w.createPod(snapshot, action.Pod)
		}
	}
}

// drainNodes drains nodes for one reason, in one request.
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

// lift ends a drain.
func (w *world) lift(known *node) error {
	w.wroteDrain(known)
	known.Flags &^= slurm.FlagDrain | slurm.FlagFail
	known.Reason, known.foreign = slurm.NoReason, 0
	return nil
}

// forget removes a record. Slurm refuses when there are jobs on it. One that is down may be removed: it has no pod.
func (w *world) forget(known *node) error {
	if len(w.jobsOn(known.Name, anyPod)) > 0 {
		return errors.New("node is busy")
	}
	if known.Flags.HasAny(slurm.FlagDrain | slurm.FlagFail) {
		w.wroteDrain(known)
	}
	delete(w.slurm.nodes, known.Name)
	return nil
}

// wroteDrain checks I3 and I18: a node that somebody else had closed when the operator read it is not touched, nor one
// that it could have seen if it had read again in time.
func (w *world) wroteDrain(known *node) {
	if known.Closed() && known.foreign > 0 && (known.foreign < w.operator.looked || w.operator.tooOld) {
		w.violate("I18: the state %v of %s, set by somebody else (%s), was touched", known.StateNames(), known.Name,
			known.Reason)
	}
}

// update is one bulk request to Slurm. It can fail, without effect or with some.
func (w *world) update(names []string, change func(*node) error) error {
	if w.away() || w.chance(20) {
		return errAway
	}
	var failure error
	for _, name := range names {
		if known := w.slurm.nodes[name]; known == nil || known.forgotten {
			failure = errors.New("no such node")
		}
	}
	if failure != nil && w.chance(2) {
		return failure // the newer Slurm changes nothing then, the older one what it can
	}
	for _, name := range names {
		if known := w.slurm.nodes[name]; known != nil && !known.forgotten {
			failure = errors.Join(failure, change(known))
		}
	}
	if w.chance(20) {
		return errAway // the answer is lost
	}
	return failure
}

// deletePod asks the rule once more, and deletes a pod if it is still the one that was planned for.
func (w *world) deletePod(snapshot *plan.Snapshot, action plan.Action) {
	w.glance(snapshot)
	if snapshot.Release(action.Pod).Kind != plan.NotHeld {
		return
	}
	pod := w.pod(action.Pod.Name)
	if pod == nil || pod.UID != action.Pod.UID || pod.resourceVersion != w.operator.versions[pod.Name] {
		return // conflict
	}
	w.checkDelete(snapshot, pod, action)
	if w.chance(20) {
		return // the API server is away
	}
	w.remove(pod)
	w.operator.expects[pod.Name] = len(w.kube.pods[pod.Name].versions)
	if action.ScaledIn {
		delete(w.kube.claims, pod.Name)
	}
}

// checkDelete checks what must hold when a pod is deleted.
func (w *world) checkDelete(snapshot *plan.Snapshot, pod *object, action plan.Action) {
	if ids := w.jobsIn(pod.UID); len(ids) > 0 && !pod.Ended && !snapshot.Set.Waived {
		w.violate("I1: pod %s was deleted (%s) while job %d was %s", pod.Name, action.Cause, ids[0],
			w.slurm.jobs[ids[0]].state)
	}
	if pod.Cordoned && action.Cause == plan.Updating {
		w.violate("I11: pod %s was replaced, and with it went that its annotation cordons it", pod.Name)
	}
	if action.ScaledIn && !w.leaves(pod) {
		w.violate("I10: the claims of %s go although it was not scaled in", pod.Name)
	}
}

// jobsIn lists the jobs with processes in a pod, under whatever name its slurmd is registered.
func (w *world) jobsIn(uid string) []int64 {
	var ids []int64
	for _, id := range slices.Sorted(maps.Keys(w.slurm.jobs)) {
		if slices.Contains(slices.Collect(maps.Values(w.slurm.jobs[id].pods)), uid) {
			ids = append(ids, id)
		}
	}
	return ids
}

// leaves reports whether a person has asked for fewer pods, or taken the Kubernetes node of this one out of the
// selection. It looks at what people have asked for since the cache last caught up, not at what the plan was made from.
func (w *world) leaves(pod *object) bool {
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

// createPod creates a pod under the one name that it can have.
func (w *world) createPod(snapshot *plan.Snapshot, pod *plan.Pod) {
	made := *pod
	if made.Name = fmt.Sprintf("%s-%d", setName, pod.Ordinal); pod.Ordinal < 0 {
		made.Name = setName + "-" + pod.KubernetesNode
	}
	made.SlurmNode, made.Revision, made.Named = made.Name, snapshot.Set.Revision, !w.hostNetwork
	if w.chance(20) || w.create(made) != nil {
		return
	}
	w.operator.expects[made.Name] = len(w.kube.pods[made.Name].versions)
	w.checkTwins()
}

// checkTwins checks I2: no ordinal, Kubernetes node or Slurm node has two pods.
func (w *world) checkTwins() {
	nodes, places := map[string]bool{}, map[string]bool{}
	for _, pod := range w.podsThat(func(*object, *container) bool { return true }) {
		place := strconv.Itoa(pod.Ordinal)
		if pod.Ordinal < 0 {
			place = pod.KubernetesNode
		}
		if nodes[pod.SlurmNode] || places[place] {
			w.violate("I2: two pods for node %s or place %s", pod.SlurmNode, place)
		}
		nodes[pod.SlurmNode], places[place] = true, true
	}
}

// finish lets a NodeSet go that is being deleted and has nothing left.
func (w *world) finish() {
	set := w.kube.set.cached()
	if set == nil || !set.Deleting || len(w.podsThat(func(*object, *container) bool { return true })) > 0 {
		return
	}
	if w.kube.set.newest() == set {
		w.note("kubernetes: the NodeSet is gone")
		w.kube.set.put(nil)
	}
}
