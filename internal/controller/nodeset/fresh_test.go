package nodeset

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// connect returns a reconciler and what it observes of a NodeSet, with a session that has been read once.
func connect(t *testing.T, client *fakeSlurm) (*Reconciler, *scope, func()) {
	t.Helper()
	pool := slurm.NewPool(slurm.MirrorOptions{})
	key := slurm.Key{Namespace: "hpc", Name: "slurm"}
	if err := pool.Set(key, slurm.Settings{Dial: func() (slurm.Client, error) { return client, nil }}); err != nil {
		t.Fatal(err)
	}
	session, _ := pool.Get(key)
	if _, err := session.Mirror.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	observed := &scope{
		set:     &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu", UID: "u"}},
		session: session,
	}
	observed.snapshot.Set = plan.Set{Name: "gpu", UID: "u", Registration: time.Minute}
	return &Reconciler{Clock: clock.RealClock{}, Pool: pool, Metrics: metrics}, observed, pool.Close
}

// A slurmd that registers after the plan was made, and before the request, may have started the job that waited for it.
func TestGiveUpReadsSlurmAgain(t *testing.T) {
	for name, test := range map[string]struct {
		registers bool
		want      [][]string
	}{
		"the slurmd has not registered":   {false, [][]string{{"gpu-0"}}},
		"the slurmd has registered since": {true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := slurm.Node{Name: "gpu-0", State: slurm.StateIdle, Flags: slurm.FlagCloud | slurm.FlagPoweringUp}
				client := &fakeSlurm{nodes: map[string]slurm.Node{"gpu-0": node}}
				r, observed, closePool := connect(t, client)
				defer closePool()
				observed.snapshot.Set.Elastic = &plan.Elastic{
					Max: 1, Start: time.Minute, Idle: time.Hour, Slots: []plan.Slot{{SlurmNode: "gpu-0"}},
				}
				observed.snapshot.Pods = []plan.Pod{{
					Name: "gpu-0", UID: "p", SlurmNode: "gpu-0", Created: time.Now().Add(-time.Hour), KubernetesNode: "m1",
				}}
				r.readMirror(observed)
				decided, next := r.decide(t.Context(), observed)
				if len(next.Of(plan.ForcePowerDown)) != 1 {
					t.Fatalf("the plan is\n%s", next)
				}
				if test.registers {
					node.Flags = slurm.FlagCloud
					client.set(node)
				}
				var result outcome
				if err := r.giveUp(t.Context(), decided, &next, &result); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, client.updates); diff != "" || result.again != test.registers {
					t.Errorf("%s; another reconcile follows: %t", diff, result.again)
				}
			})
		})
	}
}

// A list of very many Slurm nodes takes longer than an absence may be old.
func TestAbsenceIsProvenByALongList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &fakeSlurm{nodes: map[string]slurm.Node{}, listTakes: 7 * time.Second}
		r, observed, closePool := connect(t, client)
		defer closePool()
		observed.snapshot.Pods = []plan.Pod{{
			Name: "gpu-0", UID: "p", SlurmNode: "gpu-0", Created: time.Now().Add(-time.Hour), KubernetesNode: "m1", Named: true,
		}}
		r.readMirror(observed)
		if _, next := r.decide(t.Context(), observed); len(next.Of(plan.Delete)) != 1 {
			t.Errorf("the plan is\n%s", next)
		}
	})
}

// A plan that reads of Slurm do not complete is not made again and again at the cost of slurmctld.
func TestReadsOfSlurmTakeAShareOfTheTime(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, test := range map[string]struct {
		next    plan.Plan
		result  outcome
		reading time.Duration
		want    time.Duration
	}{
		"it needs a read, and reads are fast": {plan.Plan{NeedsRefresh: true}, outcome{}, time.Millisecond, time.Second},
		"it needs a read, and reads take seconds": {
			plan.Plan{NeedsRefresh: true}, outcome{}, 2 * time.Second, 16 * time.Second,
		},
		"it needs a read, and reads take too long": {plan.Plan{NeedsRefresh: true}, outcome{}, time.Minute, time.Minute},
		"it wakes soon after reads that took seconds": {
			plan.Plan{Wake: now.Add(time.Second)}, outcome{}, 2 * time.Second, 16 * time.Second,
		},
		"it wakes soon, and nothing was read": {plan.Plan{Wake: now.Add(time.Second)}, outcome{}, 0, time.Second},
		"it wakes later":                      {plan.Plan{Wake: now.Add(time.Hour)}, outcome{}, 2 * time.Second, time.Hour},
		"it never wakes":                      {plan.Plan{}, outcome{}, 2 * time.Second, 0},
		"the state has changed meanwhile":     {plan.Plan{}, outcome{again: true}, 2 * time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			observed := &scope{set: &slinkyv1beta1.NodeSet{}, now: now, reading: test.reading}
			observed.snapshot.Answers = true
			if got := pause(observed, &test.next, test.result, time.Time{}); got != test.want {
				t.Errorf("the pause is %s, want %s", got, test.want)
			}
		})
	}
}
