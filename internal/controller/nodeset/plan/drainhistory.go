package plan

import (
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A DrainHistory records since when Slurm nodes are known to have been closed to jobs: drained, powered down, or
// without a record. A list of jobs proves that a closed node is empty only if it was read after the node was closed:
// until then a job could still start. After a restart of the operator the history starts empty.
type DrainHistory struct {
	since    map[string]time.Time
	closings map[string]closing
}

// A closing identifies one drain of a Slurm node, or its absence, so that a drain that was lifted and set again between
// two snapshots is noticed.
type closing struct {
	acknowledged, absent bool // acknowledged by slurmctld, and in no snapshot yet
	off                  bool // powered down, and not drained
	reason               string
	at                   time.Time
}

// Acknowledged records that the operator changed the drains of Slurm nodes, and when slurmctld answered: earlier
// snapshots prove nothing any more. It is for drains that slurmctld has confirmed, and for undrains whatever the answer
// was: they may have succeeded.
func (h *DrainHistory) Acknowledged(nodes []string, at time.Time) {
	for _, node := range nodes {
		h.record(node, at, closing{acknowledged: true})
	}
}

func (h *DrainHistory) record(node string, since time.Time, by closing) {
	if h.since == nil {
		h.since, h.closings = map[string]time.Time{}, map[string]closing{}
	}
	h.since[node], h.closings[node] = since, by
}

// Observe records which of the Slurm nodes a snapshot shows as closed, by the operator or others, and drops those that
// are open.
func (h *DrainHistory) Observe(snapshot *slurm.Snapshot, nodes []string) {
	if snapshot == nil {
		return
	}
	for _, name := range nodes {
		since, recorded := h.since[name]
		if recorded && !snapshot.NodeAsOf(name).After(since) {
			continue // the snapshot is older
		}
		node, known := snapshot.Node(name)
		if known && !node.Closed() && !node.PoweredOff() {
			delete(h.since, name)
			delete(h.closings, name)
			continue
		}
		current := closing{absent: !known}
		if known {
			current.reason, current.at, current.off = node.Reason, node.ReasonAt, !node.Closed()
		}
		before := h.closings[name]
		switch {
		case recorded && before == current:
		case before.acknowledged && known && node.DrainedByUs(): // this is the acknowledged drain
			h.record(name, since, current)
		default:
			h.record(name, snapshot.NodeAsOf(name), current)
		}
	}
}

// Retain drops all Slurm nodes but these, so that the history does not grow as names come and go.
func (h *DrainHistory) Retain(nodes []string) {
	if len(h.since) <= len(nodes) {
		return
	}
	retained := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		retained[node] = true
	}
	for node := range h.since {
		if !retained[node] {
			delete(h.since, node)
			delete(h.closings, node)
		}
	}
}

// Since returns since when each Slurm node is known to have been closed.
func (h *DrainHistory) Since() map[string]time.Time { return h.since }
