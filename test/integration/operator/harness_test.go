//go:build integration

package operator_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientrest "k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/operator"
	"github.com/slurm-operator/slurm-operator/internal/process"
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

// testImages are what the manager's containers run.
var testImages = naming.Images{Repository: "example.com/slurm", Tag: "26.05", Operator: "example.com/slurm-operator:dev"}

// A world is a namespace with a manager that looks after nothing else, and a Slurm in memory.
type world struct {
	client.Client
	namespace string
	slurm     *slurmtest.Server
	// mirror says how often managers that are run look at Slurm.
	mirror slurm.MirrorOptions

	mu     sync.Mutex
	agents map[string]agent.Report // by the address of the pod
	// stopManager stops the manager before the test ends.
	stopManager func()
	// metrics are what the manager that runs serves.
	metrics *prometheus.Registry
	// slurmTimeout is how long a request to Slurm may take, if it is not the default.
	slurmTimeout atomic.Int64
	// writes counts what the manager has asked the API server to change.
	writes atomic.Int64
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
		slurm: slurmtest.New(t, slurmtest.Release2605), agents: map[string]agent.Report{},
		mirror: slurm.MirrorOptions{Fast: 50 * time.Millisecond, Slow: 200 * time.Millisecond},
	}
	world.stopManager = sync.OnceFunc(world.run(t, countWrites(server.Config, &world.writes)))
	t.Cleanup(world.stopManager)
	return world
}

// countWrites returns a configuration whose clients count what they write. Events do not count: a recorder writes them
// later, when it finds the time.
func countWrites(config *clientrest.Config, writes *atomic.Int64) *clientrest.Config {
	counting := clientrest.CopyConfig(config)
	counting.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodGet && !strings.HasSuffix(request.URL.Path, "/events") {
				writes.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	return counting
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// run runs a manager and returns a function that stops it and waits for its end.
func (w *world) run(t *testing.T, config *clientrest.Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	w.metrics = prometheus.NewRegistry()
	go func() {
		ended <- operator.Run(ctx, config, operator.Options{
			Settings: process.Settings{MetricsAddress: "0", HealthAddress: "0", Namespaces: []string{w.namespace}}, Workers: 2,
			Registerer: w.metrics,
			Mirror:     w.mirror, Dial: w.dial, Agent: w.agent,
			Images: naming.Images{Repository: "example.com/slurm", Tag: "26.05", Operator: "example.com/slurm-operator:dev"},
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
	options.Timeout = time.Duration(w.slurmTimeout.Load())
	return rest.New(options)
}

func (w *world) agent(_ context.Context, address string) (agent.Report, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state, ok := w.agents[address]
	if !ok {
		return agent.Report{}, errors.New("no such pod")
	}
	return state, nil
}

// slurmctldAddress is where the agent of slurmctld's pod answers.
const slurmctldAddress = "10.0.0.1"

// setAgent says what that agent tells.
func (w *world) setAgent(state agent.Report) { w.setAgentAt(slurmctldAddress, state) }

// setAgentAt sets what the agent at an address reports.
func (w *world) setAgentAt(address string, state agent.Report) {
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

// giveUp is when a test stops waiting for a condition. It only has to be longer than a busy computer can take.
const giveUp = 5 * time.Minute

// eventually reads an object until check finds nothing wrong with it.
func (w *world) eventually(t *testing.T, name string, object client.Object, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, giveUp, true, func(ctx context.Context) (bool, error) {
		err := w.Get(ctx, client.ObjectKey{Name: name}, object)
		if err == nil {
			err = check()
			last = err
		}
		last = cmp.Or(last, err) // what was wrong with it says more than that there was no time for another look
		return err == nil, nil
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

// patch changes an object by a JSON merge patch.
func (w *world) patch(t *testing.T, object client.Object, format string, arguments ...any) {
	t.Helper()
	if err := w.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, arguments...))); err != nil {
		t.Fatal(err)
	}
}

// gone waits until an object does not exist.
func (w *world) gone(t *testing.T, name string, object client.Object) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, giveUp, true, func(ctx context.Context) (bool, error) {
		err := w.Get(ctx, client.ObjectKey{Name: name}, object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatalf("waiting for %T %s to go: %v", object, name, err)
	}
}

// rests waits until the manager has written nothing for a while. How long that is follows the speed of the computer: it is
// counted in reads of the API server, each after a pause.
func (w *world) rests(t *testing.T) {
	t.Helper()
	const enough = 40
	last, quiet := w.writes.Load(), 0
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, giveUp, true, func(ctx context.Context) (bool, error) {
		if err := w.List(ctx, &corev1.PodList{}); err != nil {
			return false, err
		}
		quiet++
		if now := w.writes.Load(); now != last {
			last, quiet = now, 0
		}
		return quiet > enough, nil
	})
	if err != nil {
		t.Fatalf("the manager does not come to rest: %d writes so far", last)
	}
}
