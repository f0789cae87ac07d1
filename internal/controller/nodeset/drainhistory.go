package nodeset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// drainHistories keep the drain history of each NodeSet. A new session starts a new history: it may be another cluster.
type drainHistories struct {
	mu    sync.Mutex
	bySet map[types.UID]*sessionHistory
}

type sessionHistory struct {
	session *slurm.Session
	history plan.DrainHistory
}

// observe adds a snapshot to the history of a NodeSet, and returns since when the Slurm nodes are known to have been
// closed to jobs.
func (d *drainHistories) observe(scope *scope, snapshot *slurm.Snapshot, nodes ...string) map[string]time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	history := d.of(scope)
	history.Observe(snapshot, nodes)
	since := make(map[string]time.Time, len(nodes))
	for _, node := range nodes {
		if moment, known := history.Since()[node]; known {
			since[node] = moment
		}
	}
	return since
}

// retain drops all Slurm nodes of a NodeSet but these.
func (d *drainHistories) retain(scope *scope, nodes []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of(scope).Retain(nodes)
}

func (d *drainHistories) acknowledged(scope *scope, nodes []string, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of(scope).Acknowledged(nodes, at)
}

func (d *drainHistories) forget(set types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.bySet, set)
}

func (d *drainHistories) of(scope *scope) *plan.DrainHistory {
	if d.bySet == nil {
		d.bySet = map[types.UID]*sessionHistory{}
	}
	known := d.bySet[scope.set.UID]
	if known == nil || known.session != scope.session {
		known = &sessionHistory{session: scope.session}
		d.bySet[scope.set.UID] = known
	}
	return &known.history
}
