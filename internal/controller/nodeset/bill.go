package nodeset

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/metric"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A use is what a Kubernetes node with a slurmd pod is used for.
type use uint8

const (
	forJobs use = iota
	forNothing
	forStarting
	forStopping
	forClosed
	forUnknown
	numberOfUses
)

// uses are the values of the metric's label.
var uses = [numberOfUses]string{"jobs", "idle", "starting", "stopping", "closed", "unknown"}

// A bill adds up how long pods are on Kubernetes nodes, and for what. Between two reconciles, which can be hours apart,
// the uses do not change, so the sums are computed when they are read.
type bill struct {
	desc *prometheus.Desc

	mu       sync.Mutex
	accounts map[types.NamespacedName]*account
}

// An account holds how many pods of a NodeSet have each use, since when, and the pod-seconds before.
type account struct {
	since   time.Time
	pods    [numberOfUses]int
	seconds [numberOfUses]float64
}

func newBill() *bill {
	return &bill{desc: metric.NodeSeconds.Desc(), accounts: map[types.NamespacedName]*account{}}
}

// update sets what the pods of a NodeSet are used for from now on.
func (b *bill) update(scope *scope) {
	var pods [numberOfUses]int
	for i := range scope.snapshot.Pods {
		if pod := &scope.snapshot.Pods[i]; !pod.Unscheduled && !pod.Exited {
			pods[useOf(scope.snapshot.Slurm, pod)]++
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	key := client.ObjectKeyFromObject(scope.set)
	if b.accounts[key] == nil {
		b.accounts[key] = &account{since: time.Now()}
	}
	b.accounts[key].add(time.Now())
	b.accounts[key].pods = pods
}

// add adds the time since the last call.
func (a *account) add(now time.Time) {
	elapsed := max(now.Sub(a.since), 0).Seconds()
	for use, pods := range a.pods {
		a.seconds[use] += float64(pods) * elapsed
	}
	a.since = now
}

// forget removes a deleted NodeSet.
func (b *bill) forget(set *slinkyv1beta1.NodeSet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.accounts, client.ObjectKeyFromObject(set))
}

// Describe implements prometheus.Collector.
func (b *bill) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- b.desc }

// Collect implements prometheus.Collector.
func (b *bill) Collect(metrics chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for set, account := range b.accounts {
		account.add(time.Now())
		for use, seconds := range account.seconds {
			metrics <- prometheus.MustNewConstMetric(b.desc, prometheus.CounterValue, seconds, set.Namespace, set.Name,
				uses[use])
		}
	}
}

// useOf returns what a pod on a Kubernetes node is used for.
func useOf(snapshot *slurm.Snapshot, pod *plan.Pod) use {
	if pod.Terminating {
		return forStopping
	}
	if snapshot == nil {
		return forUnknown
	}
	record, known := snapshot.Node(pod.SlurmNode)
	switch {
	case !known || record.PoweringUp():
		return forStarting
	case record.Busy() || snapshot.Loads[record.Name].Jobs() > 0:
		return forJobs
	case record.PoweredOff():
		return forStopping
	case record.Closed():
		return forClosed
	default:
		return forNothing
	}
}
