package nodeset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// witnesses keep one witness for each NodeSet. With another session everything is learned anew: it may be another cluster.
type witnesses struct {
	mu    sync.Mutex
	bySet map[types.UID]*testimony
}

type testimony struct {
	session *slurm.Session
	witness plan.Witness
}

// look shows nodes to the witness of a set, and returns from when on they are known to have been closed to jobs.
func (w *witnesses) look(scope *scope, snapshot *slurm.Snapshot, nodes ...string) map[string]time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	witness := w.of(scope)
	witness.Look(snapshot, nodes)
	since := make(map[string]time.Time, len(nodes))
	for _, node := range nodes {
		if moment, known := witness.Since()[node]; known {
			since[node] = moment
		}
	}
	return since
}

// keep forgets all nodes of a set but these.
func (w *witnesses) keep(scope *scope, nodes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(scope).Keep(nodes)
}

func (w *witnesses) acknowledged(scope *scope, nodes []string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(scope).Acknowledged(nodes, at)
}

func (w *witnesses) forget(set types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.bySet, set)
}

func (w *witnesses) of(scope *scope) *plan.Witness {
	if w.bySet == nil {
		w.bySet = map[types.UID]*testimony{}
	}
	known := w.bySet[scope.set.UID]
	if known == nil || known.session != scope.session {
		known = &testimony{session: scope.session}
		w.bySet[scope.set.UID] = known
	}
	return &known.witness
}
