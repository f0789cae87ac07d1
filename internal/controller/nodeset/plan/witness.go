package plan

import (
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A Witness remembers from when on nodes are known to have been drained. A list of jobs proves that a drained node is empty
// only if it was asked for after the drain was there: before it, a job could still begin. What a witness has not seen or
// been told, it does not know: after a restart of the operator it begins anew.
type Witness struct {
	since map[string]time.Time
}

// Acknowledged notes that slurmctld has confirmed a drain of nodes at a moment.
func (w *Witness) Acknowledged(nodes []string, at time.Time) {
	for _, node := range nodes {
		w.note(node, at)
	}
}

func (w *Witness) note(node string, at time.Time) {
	if w.since == nil {
		w.since = map[string]time.Time{}
	}
	if _, known := w.since[node]; !known {
		w.since[node] = at
	}
}

// Look notes which of the nodes a snapshot shows to be drained, by whomever, and forgets those that it shows not to be.
func (w *Witness) Look(snapshot *slurm.Snapshot, nodes []string) {
	if snapshot == nil {
		return
	}
	for _, name := range nodes {
		node, known := snapshot.Node(name)
		switch since, noted := w.since[name]; {
		case known && node.Draining():
			w.note(name, snapshot.NodesAsOf)
		case noted && snapshot.NodesAsOf.After(since):
			delete(w.since, name)
		}
	}
}

// Since is from when on each node is known to have been drained.
func (w *Witness) Since() map[string]time.Time { return w.since }
