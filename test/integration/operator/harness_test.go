//go:build integration

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientrest "k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/controller/cluster"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/operator"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
	"github.com/slurm-operator/slurm-operator/test/integration/apiserver"
)

// server is shared by all tests of the package; each works in a namespace of its own.
var server *apiserver.Server

func TestMain(m *testing.M) {
	os.Exit(apiserver.Run(m, func(started *apiserver.Server) error {
		server = started
		return nil
	}))
}

// A world is a namespace with a manager that looks after nothing else, and a Slurm in memory.
type world struct {
	client.Client
	namespace string
	slurm     *slurmtest.Server

	mu     sync.Mutex
	agents map[string]cluster.AgentState // by the address of the pod
}

// newWorld makes a namespace and runs a manager for it until the test ends.
func newWorld(t *testing.T) *world {
	t.Helper()
	direct, err := client.New(server.Config, client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := direct.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	world := &world{
		Client: client.NewNamespacedClient(direct, namespace.Name), namespace: namespace.Name,
		slurm: slurmtest.New(t, slurmtest.Release2605), agents: map[string]cluster.AgentState{},
	}
	t.Cleanup(world.run(t, server.Config))
	return world
}

// run runs a manager and returns a function that stops it and waits for its end.
func (w *world) run(t *testing.T, config *clientrest.Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- operator.Run(ctx, config, operator.Options{
			MetricsAddress: "0", HealthAddress: "0", Namespaces: []string{w.namespace}, Workers: 2,
			Images:     naming.Images{Repository: "images", Tag: "26.05", Operator: "images/slurm-operator"},
			Registerer: prometheus.NewRegistry(),
			Mirror:     slurm.MirrorOptions{Fast: 50 * time.Millisecond, Slow: 200 * time.Millisecond},
			Dial:       w.dial, Agent: w.agent,
		})
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	}
}

// dial connects to the Slurm in memory, wherever a Service would lead.
func (w *world) dial(options rest.Options) (slurm.Client, error) {
	options.URL, options.Metrics = w.slurm.URL, ""
	return rest.New(options)
}

func (w *world) agent(_ context.Context, address string) (cluster.AgentState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state, ok := w.agents[address]
	if !ok {
		return cluster.AgentState{}, errors.New("no such pod")
	}
	return state, nil
}

func (w *world) setAgent(address string, state cluster.AgentState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.agents[address] = state
}

// create creates objects in the world's namespace.
func (w *world) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := w.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// get reads an object that must exist.
func (w *world) get(t *testing.T, name string, object client.Object) {
	t.Helper()
	if err := w.Get(t.Context(), client.ObjectKey{Name: name}, object); err != nil {
		t.Fatal(err)
	}
}

// eventually reads an object until check finds nothing wrong with it.
func (w *world) eventually(t *testing.T, name string, object client.Object, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		if last = w.Get(ctx, client.ObjectKey{Name: name}, object); last == nil {
			last = check()
		}
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %T %s: %v", object, name, last)
	}
}

// condition reports that a condition is not, for the latest generation, as it should be.
func condition(object client.Object, conditions []metav1.Condition, kind string, is metav1.ConditionStatus, reason string) error {
	found := meta.FindStatusCondition(conditions, kind)
	if found == nil || found.Status != is || found.Reason != reason || found.ObservedGeneration != object.GetGeneration() {
		return fmt.Errorf("condition %s is %+v instead of %s, %s", kind, found, is, reason)
	}
	return nil
}
