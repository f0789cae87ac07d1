package nodeset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

// eventInterval is the least time between two events of a NodeSet about the same decision, however many pods it
// concerns.
const eventInterval = time.Minute

// A decision is an action on pods or Slurm nodes, and its cause.
type decision struct {
	kind  plan.Kind
	cause plan.Cause
}

// decisions collects the actions for NodeSets until an event reports them. The zero value is empty.
type decisions struct {
	mu    sync.Mutex
	bySet map[types.UID]map[decision]*unreported
}

// unreported are the pods, or Slurm nodes, that no event has reported yet, and when the last event was recorded.
type unreported struct {
	pods, nodes []string
	lastEvent   time.Time
}

// did records an action for a pod.
func (d *decisions) did(set types.UID, action plan.Action, pod, node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bySet == nil {
		d.bySet = map[types.UID]map[decision]*unreported{}
	}
	if d.bySet[set] == nil {
		d.bySet[set] = map[decision]*unreported{}
	}
	about := decision{action.Kind, action.Cause}
	if d.bySet[set][about] == nil {
		d.bySet[set][about] = &unreported{}
	}
	done := d.bySet[set][about]
	done.nodes = append(done.nodes, node)
	if pod != "" {
		done.pods = append(done.pods, pod)
	}
}

// An announcement is an event about a decision.
type announcement struct {
	decision
	pods, nodes []string
}

// due removes and returns what must be reported of a NodeSet now, and when more is due; zero for never.
func (d *decisions) due(set types.UID, now time.Time) (due []announcement, next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for about, done := range d.bySet[set] {
		ready := done.lastEvent.Add(eventInterval)
		switch {
		case len(done.nodes) == 0 && !ready.After(now):
			delete(d.bySet[set], about)
		case len(done.nodes) == 0:
		case ready.After(now):
			if next.IsZero() || ready.Before(next) {
				next = ready
			}
		default:
			due = append(due, announcement{about, done.pods, done.nodes})
			*done = unreported{lastEvent: now}
		}
	}
	slices.SortFunc(due, func(a, b announcement) int {
		return cmp.Or(cmp.Compare(order[a.kind], order[b.kind]), cmp.Compare(a.cause, b.cause))
	})
	return due, next
}

// forget drops the actions of a deleted NodeSet.
func (d *decisions) forget(set types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.bySet, set)
}

// order is the order of the events of one reconcile.
var order = map[plan.Kind]int{
	plan.Undrain: 0, plan.Drain: 1, plan.ForcePowerDown: 2, plan.PowerDown: 3, plan.Resume: 4, plan.PowerUp: 5,
	plan.Delete: 6, plan.Prune: 7, plan.RequestCapacity: 8, plan.Create: 9,
}

// eventReasons are the reasons of events. Actions without one have no effect of their own that users see.
var eventReasons = map[plan.Kind]string{
	plan.Undrain: "UndrainedNodes", plan.Drain: "DrainedNodes", plan.Delete: "DeletedPods", plan.Prune: "DeletedNodes",
	plan.Create: "CreatedPods", plan.PowerUp: "PoweredUpNodes", plan.PowerDown: "PoweredDownNodes",
	plan.ForcePowerDown: "GaveUpNodes", plan.Resume: "ResumedNodes", plan.RequestCapacity: "RequestedCapacity",
}

// done counts an action, and records it for an event.
func (r *Reconciler) done(scope *scope, action plan.Action, pod, node string) {
	r.Metrics.did(action)
	if _, reported := eventReasons[action.Kind]; reported {
		r.decisions.did(scope.set.UID, action, pod, node)
	}
}

// announce records the events that are due, and returns when more are.
func (r *Reconciler) announce(scope *scope, next *plan.Plan) time.Time {
	due, more := r.decisions.due(scope.set.UID, scope.now)
	r.record(scope, next, due)
	return more
}

// announceRest records the remaining events of a NodeSet whose deletion is about to complete.
func (r *Reconciler) announceRest(scope *scope) {
	due, _ := r.decisions.due(scope.set.UID, scope.now.Add(eventInterval))
	r.record(scope, &plan.Plan{}, due)
	r.decisions.forget(scope.set.UID)
}

// record records an event for each decision, with one of its pods as the related object.
func (r *Reconciler) record(scope *scope, next *plan.Plan, due []announcement) {
	for _, made := range due {
		var related client.Object
		if len(made.pods) > 0 {
			related = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: scope.set.Namespace, Name: made.pods[0]}}
		}
		r.Status.Record(scope.set, related, eventReasons[made.kind], string(made.cause), made.note(next))
	}
}

// note returns the text of an event: the action, its objects, and what it still waits for.
func (a announcement) note(next *plan.Plan) string {
	var text string
	switch a.kind {
	case plan.Drain:
		text = fmt.Sprintf("drained %s %s: %s", plural(len(a.nodes), "Slurm node"), purposes[a.cause],
			hostlist.Text(a.nodes))
		text += waitingForJobs(waitsFor(next, a.cause))
	case plan.Undrain:
		text = fmt.Sprintf("undrained %s: %s; they take jobs again", plural(len(a.nodes), "Slurm node"),
			hostlist.Text(a.nodes))
	case plan.Delete:
		text = fmt.Sprintf("deleted %s %s: %s", plural(len(a.pods), "pod"), purposes[a.cause], hostlist.Text(a.pods))
	case plan.Prune:
		text = fmt.Sprintf("deleted %s without a pod from Slurm: %s", plural(len(a.nodes), "node"),
			hostlist.Text(a.nodes))
	case plan.Create:
		text = fmt.Sprintf("created %s: %s", plural(len(a.pods), "pod"), hostlist.Text(a.pods))
	case plan.PowerUp:
		text = fmt.Sprintf("powered up %s %s: %s", plural(len(a.nodes), "Slurm node"), purposes[a.cause],
			hostlist.Text(a.nodes))
	case plan.PowerDown:
		text = fmt.Sprintf("powered down %s %s: %s", plural(len(a.nodes), "Slurm node"), purposes[a.cause],
			hostlist.Text(a.nodes))
	case plan.ForcePowerDown:
		text = fmt.Sprintf("gave up starting %s %s: %s; their jobs return to the queue",
			plural(len(a.nodes), "Slurm node"), purposes[a.cause], hostlist.Text(a.nodes))
	case plan.Resume:
		text = fmt.Sprintf("resumed %s that did not start in time: %s", plural(len(a.nodes), "Slurm node"),
			hostlist.Text(a.nodes))
	case plan.RequestCapacity:
		text = fmt.Sprintf("asked cluster-autoscaler for room for the pods of %s: %s", plural(len(a.nodes), "Slurm node"),
			hostlist.Text(a.nodes))
	case plan.ClearReason, plan.MarkPod, plan.UnmarkPod, plan.Withdraw:
	}
	return text
}

// purposes describe causes in the text of events.
var purposes = map[plan.Cause]string{
	plan.ScaleIn: "for scale-in", plan.Updating: "for an update", plan.Deletion: "because the NodeSet is being deleted",
	plan.PodCordon: "because the pod is cordoned", plan.FromKubernetesNode: "because of the Kubernetes node",
	plan.Idle: "that were idle", plan.NoPod: "without a pod", plan.PoweredDown: "whose Slurm nodes are powered down",
	plan.ForMinimum: "for minReplicas", plan.ForWarm: "for warmReplicas",
	plan.ForSchedule: "for a schedule",
	plan.NoCapacity:  "for lack of capacity in Kubernetes", plan.NotStarted: "whose pods did not start in time",
	plan.Exited: "that exited", plan.Lost: "whose Slurm node record was lost",
}

// waitingForJobs says how many Slurm nodes wait for jobs, and until when at the latest; empty if none does.
func waitingForJobs(waits []plan.Wait) string {
	busy, open, until := 0, false, time.Time{}
	for _, wait := range waits {
		if wait.Hold.Kind != plan.Jobs {
			continue
		}
		busy++
		open = open || wait.Hold.Until.IsZero()
		if wait.Hold.Until.After(until) {
			until = wait.Hold.Until
		}
	}
	switch {
	case busy == 0:
		return ""
	case open:
		return fmt.Sprintf("; %d of them with jobs, some of which have no time limit", busy)
	default:
		return fmt.Sprintf("; %d of them with jobs, the last until %s", busy,
			until.UTC().Format("2006-01-02 15:04 MST"))
	}
}

// plural returns a number with its noun.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
