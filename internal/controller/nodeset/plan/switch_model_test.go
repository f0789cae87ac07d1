package plan_test

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// The part of the model in which the NodeSet becomes elastic, and fixed again.

// A nodeKind is how slurmctld knows a Slurm node.
type nodeKind uint8

const (
	isRecorded nodeKind = iota // it has a record in slurm.conf
	isUnknown
	isDynamic // its slurmd has registered without a record
)

// drainedByAdmin reports whether an administrator has drained the node.
func (n *elasticNode) drainedByAdmin() bool { return n.drained && !slurm.IsOurReason(n.reason) }

func (k nodeKind) flag() slurm.Flags {
	if k == isDynamic {
		return slurm.FlagDynamicNorm
	}
	return slurm.FlagCloud
}

// modelOwner is the comment of the NodeSet's Slurm nodes.
var modelOwner = slurm.Owner{Namespace: "default", PodName: "gpu", NodeSetName: setName, NodeSetUID: "set-1"}.String()

// switchMode makes the NodeSet elastic, or fixed. Its pods then have another revision.
func (w *elasticModel) switchMode() {
	w.fixed = !w.fixed
	w.revise()
	w.note("a user makes the NodeSet fixed: %t", w.fixed)
}

// changeWeight changes the records of all Slurm nodes, and with them the revision of the pods.
func (w *elasticModel) changeWeight() {
	w.weight++
	w.revise()
	w.note("a user sets the weight to %d", w.weight)
}

func (w *elasticModel) revise() { w.set.Revision = fmt.Sprintf("%t-%d", w.fixed, w.weight) }

// observeMode sets what the planner knows of records and requests.
func (w *elasticModel) observeMode() {
	elastic := w.sizes
	if w.fixed {
		elastic = plan.Elastic{Ended: true, Start: w.sizes.Start, Backoff: w.sizes.Backoff}
	}
	for i, node := range w.nodes {
		if !w.fixed || node.kind == isRecorded {
			elastic.Slots = append(elastic.Slots, plan.Slot{
				Ordinal: i, SlurmNode: slotName(i), Mismatched: w.fixed,
				Outdated: w.fixed || node.kind == isRecorded && node.weight != w.weight,
			})
		}
	}
	for _, request := range w.requests {
		elastic.Requests = append(elastic.Requests, *request)
	}
	w.set.Elastic = &elastic
	if w.fixed && len(elastic.Slots) == 0 && len(w.requests) == 0 {
		w.set.Elastic = nil
	}
}

// configure gives slurmctld another slurm.conf, as the controller of the Controller does.
func (w *elasticModel) configure() {
	for i, node := range w.nodes {
		pod := w.pods[i]
		closed := node.kind == isRecorded && node.drained && slurm.IsOurReason(node.reason) && w.jobOn(i) == nil
		switch {
		case !w.fixed && node.kind == isUnknown && (pod == nil || !pod.Dynamic):
			w.note("slurm: %s gets a record", slotName(i))
			*node = elasticNode{since: w.now, lastBusy: w.now, weight: w.weight}
		case !w.fixed && closed && node.weight != w.weight && pod == nil:
			w.note("slurm: the record of %s changes", slotName(i))
			node.weight = w.weight
		case w.fixed && closed && (pod == nil || pod.Dynamic):
			w.note("slurm: the record of %s is removed", slotName(i))
			*node = elasticNode{kind: isUnknown}
		}
	}
}

// registers reports whether a slurmd that has started can register, and makes slurmctld know it.
func (w *elasticModel) registers(pod *plan.Pod, node *elasticNode) bool {
	switch {
	case pod.Dynamic == (node.kind == isRecorded):
		w.violate("slurmd in %s exits: its record %t, dynamic %t", pod.Name, node.kind == isRecorded, pod.Dynamic)
		return false
	case pod.Dynamic:
		if node.kind == isUnknown {
			*node = elasticNode{}
		}
		node.kind = isDynamic
		node.move(isUp, w.now)
	}
	return true
}

// prune deletes the record of a dynamic node.
func (w *elasticModel) prune(name string) {
	for i, node := range w.nodes {
		if slotName(i) != name {
			continue
		}
		w.note("operator: prune %s", name)
		if node.kind != isDynamic || w.pods[i] != nil || w.jobOn(i) != nil || node.drainedByAdmin() {
			w.violate("the record of %s is deleted", name)
		}
		*node = elasticNode{kind: isUnknown}
	}
}

// converge reconciles until a state is reached.
func (w *elasticModel) converge(reached func() bool) bool {
	for range 2000 {
		w.reconcile(math.MaxInt)
		w.pass(5 * time.Second)
		if len(w.broken) > 0 {
			return false
		}
		if reached() {
			return true
		}
	}
	return false
}

// settledFixed reports whether a fixed NodeSet has all its pods, no records and requests are left, and all jobs that
// its size allows have run.
func (w *elasticModel) settledFixed() bool {
	up := 0
	for i, pod := range w.pods {
		if pod.Dynamic && !pod.Terminating && w.nodes[i].pod == pod.UID && !w.nodes[i].drained {
			up++
		}
	}
	return up == w.set.Replicas && len(w.pods) == up && len(w.requests) == 0 &&
		!slices.ContainsFunc(w.jobs, func(job *elasticJob) bool { return job.size <= w.set.Replicas && !job.finished }) &&
		!slices.ContainsFunc(w.nodes, func(node *elasticNode) bool { return node.kind == isRecorded })
}
