package nodeset

import (
	"maps"
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

// look shows a cluster to the witness of a set, and returns from when on the set's nodes are known to have been drained.
func (w *witnesses) look(scope *scope) map[string]time.Time {
	nodes := make([]string, len(scope.snapshot.Pods))
	for i := range scope.snapshot.Pods {
		nodes[i] = scope.snapshot.Pods[i].Node
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	witness := w.of(scope)
	witness.Look(scope.snapshot.Slurm, nodes)
	return maps.Clone(witness.Since())
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
