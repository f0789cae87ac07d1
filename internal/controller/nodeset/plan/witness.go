package plan

import (
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A Witness remembers from when on nodes are known to have been closed to jobs: drained, or not there. A list of jobs proves
// that a closed node is empty only if it was asked for after the node was closed: before that, a job could still begin.
// What a witness has not seen or been told, it does not know: after a restart of the operator it begins anew.
type Witness struct {
	since map[string]time.Time
	seals map[string]seal
}

// A seal tells one closing of a node from another, so that a node that was open in between is noticed although nobody
// looked meanwhile.
type seal struct {
	acknowledged, absent bool // acknowledged, and not yet seen
	reason               string
	at                   time.Time
}

// Acknowledged notes a change of ours to the drains of nodes, and when it was answered: what was seen of the nodes before
// proves nothing any more. It is for drains that slurmctld has confirmed, and for drains that were to be lifted, whatever
// the answer was: they may be.
func (w *Witness) Acknowledged(nodes []string, at time.Time) {
	for _, node := range nodes {
		w.note(node, at, seal{acknowledged: true})
	}
}

func (w *Witness) note(node string, since time.Time, closing seal) {
	if w.since == nil {
		w.since, w.seals = map[string]time.Time{}, map[string]seal{}
	}
	w.since[node], w.seals[node] = since, closing
}

// Look notes which of the nodes a snapshot shows to be closed, by whomever, and forgets those that it shows to be open.
func (w *Witness) Look(snapshot *slurm.Snapshot, nodes []string) {
	if snapshot == nil {
		return
	}
	for _, name := range nodes {
		since, noted := w.since[name]
		if noted && !snapshot.NodesAsOf.After(since) {
			continue // it shows what was before
		}
		node, known := snapshot.Node(name)
		if known && !node.Closed() {
			delete(w.since, name)
			delete(w.seals, name)
			continue
		}
		closing := seal{absent: !known}
		if known {
			closing.reason, closing.at = node.Reason, node.ReasonAt
		}
		before := w.seals[name]
		switch {
		case noted && before == closing:
		case before.acknowledged && known && node.DrainedByUs(): // it is the drain that was acknowledged
			w.note(name, since, closing)
		default:
			w.note(name, snapshot.NodesAsOf, closing)
		}
	}
}

// Keep forgets all nodes but these: names come and go, and a witness lives as long as its NodeSet.
func (w *Witness) Keep(nodes []string) {
	if len(w.since) <= len(nodes) {
		return
	}
	kept := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		kept[node] = true
	}
	for node := range w.since {
		if !kept[node] {
			delete(w.since, node)
			delete(w.seals, node)
		}
	}
}

// Since is from when on each node is known to have been closed.
func (w *Witness) Since() map[string]time.Time { return w.since }
