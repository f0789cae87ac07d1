package nodeset

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// fakeSlurm answers from memory.
type fakeSlurm struct {
	slurm.Client // nil; for methods that are not needed
	mu           sync.Mutex
	nodes        map[string]slurm.Node
	refused      string // the node whose updates are refused
	updates      [][]string
	lists        int
	listTakes    time.Duration
	singles      []string
}

func (f *fakeSlurm) Info() slurm.Info { return slurm.Info{} }

func (f *fakeSlurm) Diag(context.Context) (slurm.Diag, error) {
	return slurm.Diag{Now: time.Now(), CountersSince: time.Unix(1, 0), RPCs: map[string]int64{}}, nil
}

func (f *fakeSlurm) Nodes(context.Context, slurm.Cursor) (slurm.NodeList, error) {
	time.Sleep(max(f.listTakes, time.Second))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	list := slurm.NodeList{Cursor: 1}
	for _, node := range f.nodes {
		list.Nodes = append(list.Nodes, node)
	}
	return list, nil
}

// set changes the record of a Slurm node.
func (f *fakeSlurm) set(node slurm.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[node.Name] = node
}

func (f *fakeSlurm) Node(_ context.Context, name string) (slurm.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.singles = append(f.singles, name)
	return f.nodes[name], nil
}

func (f *fakeSlurm) Jobs(context.Context, slurm.Cursor) (slurm.JobList, error) {
	time.Sleep(time.Millisecond)
	return slurm.JobList{Cursor: 1}, nil
}

func (f *fakeSlurm) JobStates(context.Context, func(slurm.JobState) error) (int64, error) {
	return 0, nil
}

func (f *fakeSlurm) UpdateNodes(_ context.Context, names []string, _ slurm.NodeUpdate) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.updates = append(f.updates, names)
	switch {
	case !slices.Contains(names, f.refused):
		return nil
	case len(names) == 1:
		return &slurm.Error{Kind: slurm.NotFound, Op: "update nodes"}
	default:
		return &slurm.Error{Kind: slurm.PartialEffect, Op: "update nodes"}
	}
}

func TestOneSlurmNodeDoesNotBlockTheDescriptionOfOthers(t *testing.T) {
	client := &fakeSlurm{refused: "gpu-5"}
	r := &Reconciler{Clock: clock.RealClock{}}
	observed := &scope{
		set: &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, session: &slurm.Session{Client: client},
	}
	var nodes []string
	for i := range 64 {
		nodes = append(nodes, fmt.Sprintf("gpu-%d", i))
	}
	if err := r.describe(t.Context(), observed, nodes, slurm.NodeUpdate{Comment: new("x")}); err == nil {
		t.Error("the refusal is not reported")
	}
	described := map[string]bool{}
	for _, names := range client.updates {
		for _, name := range names {
			described[name] = described[name] || !slices.Contains(names, client.refused)
		}
	}
	for _, node := range nodes {
		if described[node] == (node == client.refused) {
			t.Errorf("%s is described: %t", node, described[node])
		}
	}
	if requests := len(client.updates); requests > 13 {
		t.Errorf("%d requests for 64 nodes", requests)
	}
	if r.expectations.lastDescribed("u").IsZero() {
		t.Error("no description is expected in the next snapshot")
	}
}

// TestDecisionReadsOnlySlurmNodesConcerned has a NodeSet of three pods in a cluster of 2,000 Slurm nodes.
func TestDecisionReadsOnlySlurmNodesConcerned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &fakeSlurm{nodes: map[string]slurm.Node{}}
		for i := range 2000 {
			name := fmt.Sprintf("gpu-%d", i)
			client.nodes[name] = slurm.Node{Name: name, State: slurm.StateIdle}
		}
		for _, name := range []string{"gpu-0", "gpu-1"} {
			client.nodes[name] = slurm.Node{
				Name: name, State: slurm.StateIdle, Flags: slurm.FlagDrain, Reason: slurm.OurReason("scale-in"),
			}
		}
		pool := slurm.NewPool(slurm.MirrorOptions{})
		defer pool.Close()
		key := slurm.Key{Namespace: "hpc", Name: "slurm"}
		if err := pool.Set(key, slurm.Settings{Dial: func() (slurm.Client, error) { return client, nil }}); err != nil {
			t.Fatal(err)
		}
		session, _ := pool.Get(key)
		if _, err := session.Mirror.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r := &Reconciler{Clock: clock.RealClock{}, Pool: pool}
		observed := &scope{set: &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, session: session}
		observed.snapshot.Set = plan.Set{Name: "gpu", UID: "u", Replicas: 1, Registration: time.Minute}
		up := time.Now().Add(-time.Hour)
		for i := range 3 {
			name := fmt.Sprintf("gpu-%d", i)
			observed.snapshot.Pods = append(observed.snapshot.Pods, plan.Pod{
				Name: name, UID: name, SlurmNode: name, Ordinal: i, Created: up, EverRan: true, Started: up, ReadySince: up,
				Named: true,
			})
		}
		r.readMirror(observed)
		lists := client.lists
		decided, next := r.decide(t.Context(), observed)
		if client.lists != lists {
			t.Errorf("%d lists for a decision about two of 2,000 Slurm nodes", client.lists-lists)
		}
		slices.Sort(client.singles)
		if diff := cmp.Diff([]string{"gpu-0", "gpu-1"}, client.singles); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]bool{"gpu-0": true, "gpu-1": true}, decided.snapshot.Reread); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]bool{"gpu-0": true, "gpu-1": true}, next.Deleted()); diff != "" {
			t.Errorf("%s in\n%s", diff, next)
		}
	})
}
