package nodeset

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// powerUps remember since when Slurm nodes of elastic NodeSets are powering up, for metrics: Slurm does not record it.
// The zero value is empty.
type powerUps struct {
	mu    sync.Mutex
	bySet map[types.UID]map[string]time.Time
}

// observe updates since when Slurm nodes are powering up, and returns that of those that have registered since the last
// call.
func (p *powerUps) observe(scope *scope) map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, after, registered := p.bySet[scope.set.UID], map[string]time.Time{}, map[string]time.Time{}
	for _, slot := range scope.snapshot.Set.Elastic.Slots {
		record, known := scope.snapshot.Slurm.Node(slot.SlurmNode)
		since, began := before[slot.SlurmNode]
		switch {
		case !known:
		case record.PoweringUp() && began:
			after[slot.SlurmNode] = since
		case record.PoweringUp():
			after[slot.SlurmNode] = scope.now
		case began && record.Responding():
			registered[slot.SlurmNode] = since
		}
	}
	if p.bySet == nil {
		p.bySet = map[types.UID]map[string]time.Time{}
	}
	p.bySet[scope.set.UID] = after
	return registered
}

// forget drops a deleted NodeSet.
func (p *powerUps) forget(set types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.bySet, set)
}

// measurePowerUps measures the power-ups of an elastic NodeSet that are complete.
func (r *Reconciler) measurePowerUps(scope *scope) {
	if scope.set.Spec.Elastic == nil || scope.snapshot.Slurm == nil {
		return
	}
	r.Metrics.expectPowerUps(scope.set)
	registered := r.powerUps.observe(scope)
	if len(registered) == 0 {
		return
	}
	for i := range scope.pods {
		pod := &scope.snapshot.Pods[i]
		if began, complete := registered[pod.SlurmNode]; complete {
			r.Metrics.poweredUp(scope.set, powerUp{
				began: began, created: pod.Created, scheduled: scheduledAt(&scope.pods[i]), started: pod.Started,
				registered: scope.now,
			})
		}
	}
}

// A powerUp holds the times of a power-up, as far as they are known.
type powerUp struct {
	began, created, scheduled, started, registered time.Time
}

// phases are those of a power-up.
const (
	phaseCreate   = "create"
	phaseSchedule = "schedule"
	phaseStart    = "start"
	phaseRegister = "register"
)

// expectPowerUps creates the series of a NodeSet: Prometheus does not count the first observation of a new one.
func (m *Metrics) expectPowerUps(set *slinkyv1beta1.NodeSet) {
	m.powerUps.WithLabelValues(set.Namespace, set.Name)
	for _, phase := range []string{phaseCreate, phaseSchedule, phaseStart, phaseRegister} {
		m.powerUpPhases.WithLabelValues(set.Namespace, set.Name, phase)
	}
}

// poweredUp measures a power-up. If the operator was started in the middle of it, its begin is not known: it was first
// seen after the creation of the pod.
func (m *Metrics) poweredUp(set *slinkyv1beta1.NodeSet, is powerUp) {
	if is.began.After(is.created.Add(resolution)) {
		is.began = time.Time{}
	} else {
		m.powerUps.WithLabelValues(set.Namespace, set.Name).Observe(is.registered.Sub(is.began).Seconds())
	}
	for _, phase := range []struct {
		name     string
		from, to time.Time
	}{
		{phaseCreate, is.began, is.created}, {phaseSchedule, is.created, is.scheduled},
		{phaseStart, is.scheduled, is.started}, {phaseRegister, is.started, is.registered},
	} {
		if !phase.from.IsZero() && !phase.to.IsZero() {
			m.powerUpPhases.WithLabelValues(set.Namespace, set.Name, phase.name).
				Observe(max(phase.to.Sub(phase.from), 0).Seconds())
		}
	}
}

// resolution is that of times in Kubernetes, which truncates them.
const resolution = time.Second

// scheduledAt returns when a pod was bound to a Kubernetes node; zero if it is not.
func scheduledAt(pod *corev1.Pod) time.Time {
	for i := range pod.Status.Conditions {
		if condition := &pod.Status.Conditions[i]; condition.Type == corev1.PodScheduled &&
			condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
