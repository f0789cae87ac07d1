//go:build integration

package operator_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientrest "k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/operator"
	"github.com/slurm-operator/slurm-operator/internal/process"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
	"github.com/slurm-operator/slurm-operator/test/integration/apiserver"
	"github.com/slurm-operator/slurm-operator/test/served"
)

// server is shared by all tests of the package; each uses its own namespace.
var server *apiserver.Server

func TestMain(m *testing.M) {
	startLog()
	os.Exit(apiserver.Run(m, func(started *apiserver.Server) error {
		server = started
		return nil
	}))
}

// testImages are the images of the containers that the manager creates.
var testImages = naming.Images{
	Repository: "example.com/slurm", Tag: "26.05", Operator: "example.com/slurm-operator:dev",
}

// A world is a namespace with a manager for this namespace only, and an in-memory Slurm.
type world struct {
	client.Client
	namespace string
	slurm     *slurmtest.Server
	// mirror sets how often the managers poll Slurm.
	mirror slurm.MirrorOptions

	mu     sync.Mutex
	agents map[string]agent.Report // by the address of the pod
	// agentKey is the key that agents have; nil for that of the cluster.
	agentKey []byte
	// queried are the addresses at which agents were queried, and dialed is how the manager connected to slurmrestd.
	queried map[string]bool
	dialed  []rest.Options
	// slurmrestd is where the in-memory Slurm answers with the certificates of the RestApis.
	slurmrestd string
	// impostor is a certificate that is served instead; nil for none.
	impostor atomic.Pointer[tls.Certificate]
	// stopManager stops the manager before the test ends.
	stopManager func()
	// metrics are the metrics of the running manager.
	metrics *prometheus.Registry
	// elects makes managers lead only with the lease of the namespace.
	elects bool
	// slurmTimeout is the timeout of requests to Slurm in nanoseconds; zero for the default.
	slurmTimeout atomic.Int64
	// writes counts the manager's write requests to the API server.
	writes atomic.Int64
	// operator is the running manager; nil for none.
	operator *runner
	// unobserved reads the API server for the harness, flights are the requests of the test, and loops its loops that
	// react to the manager.
	unobserved client.Client
	flights    flights
	loops      map[*beats]bool
}

// newWorld creates a namespace and runs a manager for it until the test ends.
func newWorld(t *testing.T) *world {
	t.Helper()
	world := &world{
		slurm: slurmtest.New(t, slurmtest.Release2605), agents: map[string]agent.Report{}, queried: map[string]bool{},
		mirror: slurm.MirrorOptions{Fast: 50 * time.Millisecond, Slow: 200 * time.Millisecond}, loops: map[*beats]bool{},
	}
	direct, err := client.New(world.flights.through(server.Config), client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if world.unobserved, err = client.New(server.Config, client.Options{Scheme: operator.Scheme()}); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := direct.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	world.Client, world.namespace = client.NewNamespacedClient(direct, namespace.Name), namespace.Name
	world.slurmrestd = world.slurm.Listen(t, "127.0.0.1:0", world.certificates())
	world.stopManager = sync.OnceFunc(world.run(t, countWrites(server.Config, &world.writes)))
	t.Cleanup(world.stopManager)
	return world
}

// countWrites returns a configuration whose clients count their writes. Events do not count, because a recorder writes
// them asynchronously.
func countWrites(config *clientrest.Config, writes *atomic.Int64) *clientrest.Config {
	counting := clientrest.CopyConfig(config)
	counting.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodGet && !strings.HasSuffix(request.URL.Path, "/events") &&
				!strings.Contains(request.URL.Path, "/leases/") { // which a leader renews
				writes.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	return counting
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// run runs a manager and returns a function that stops it and waits until it has exited.
func (w *world) run(t *testing.T, config *clientrest.Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	w.metrics = prometheus.NewRegistry()
	running := &runner{
		cache: observedCache{kinds: map[schema.GroupVersionKind]bool{}}, sessions: map[*session]bool{},
	}
	w.mu.Lock()
	w.operator = running
	w.mu.Unlock()
	go func() {
		ended <- operator.Run(ctx, running.flights.through(config), operator.Options{
			Settings:   process.Settings{MetricsAddress: "0", HealthAddress: "0", Namespaces: []string{w.namespace}},
			Workers:    2,
			Registerer: w.metrics, LeaderElection: w.elects, LeaderElectionNamespace: w.namespace,
			Mirror: w.mirror, Dial: running.dial(w.dial), Agent: w.agent,
			NewQueue: running.newQueue, NewCache: running.newCache,
			Images: naming.Images{
				Repository: "example.com/slurm", Tag: "26.05", Operator: "example.com/slurm-operator:dev",
			},
		})
	}()
	return func() {
		w.mu.Lock()
		if w.operator == running {
			w.operator = nil
		}
		w.mu.Unlock()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	}
}

// certificates serves the certificate of the RestApi whose name a client asks for, or else that of the RestApi slurm.
func (w *world) certificates() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if impostor := w.impostor.Load(); impostor != nil {
				return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*impostor}}, nil
			}
			name, found := strings.CutSuffix(hello.ServerName, "-restapi."+w.namespace+".svc")
			if !found {
				name = "slurm"
			}
			return served.Certificate(w, client.ObjectKey{Namespace: w.namespace, Name: name}), nil
		},
	}
}

// dial connects to the in-memory Slurm instead of a Service, and verifies it as it would verify slurmrestd. Clients of
// the tests themselves need no TLS.
func (w *world) dial(options rest.Options) (slurm.Client, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, options)
	w.mu.Unlock()
	options.Address, options.Metrics, options.MetricsAddress = w.slurmrestd, "", ""
	if options.URL == "" {
		options.URL, options.Address = w.slurm.URL, ""
	}
	options.Timeout = time.Duration(w.slurmTimeout.Load())
	return rest.New(options)
}

// agent answers for the agent at an address. Without a key, it is an agent of an earlier version.
func (w *world) agent(_ context.Context, address string, key []byte) (agent.Report, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queried[address] = true
	state, ok := w.agents[address]
	switch {
	case !ok:
		return agent.Report{}, errors.New("no such pod")
	case key != nil && w.agentKey != nil && !bytes.Equal(key, w.agentKey):
		return agent.Report{}, report.ErrNotAuthenticated
	}
	return state, nil
}

// setAgentKey sets the key that agents have; nil for that of the cluster.
func (w *world) setAgentKey(key []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.agentKey = key
}

// slurmctldAddress is the address of slurmctld's pod and its agent.
const slurmctldAddress = "10.0.0.1"

// setAgent sets what slurmctld's agent reports.
func (w *world) setAgent(state agent.Report) { w.setAgentAt(slurmctldAddress, state) }

// setAgentAt sets what the agent at an address reports.
func (w *world) setAgentAt(address string, state agent.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.agents[address] = state
}

// create creates objects in the world's namespace. Nothing finds the user slurm of an image, so Controllers name it.
func (w *world) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if controller, ok := object.(*slinkyv1beta1.Controller); ok && !controller.Spec.External {
			controller.Spec.SlurmUser = clusterconf.DefaultUser
		}
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

// eventually reads an object until check returns no error.
func (w *world) eventually(tb testing.TB, name string, object client.Object, check func() error) {
	tb.Helper()
	w.await(tb, fmt.Sprintf("%T %s", object, name), named(object, name), func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
			return err
		}
		return check()
	})
}

// named returns an empty object of the same type with a name.
func named(object client.Object, name string) client.Object {
	empty := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	empty.GetObjectKind().SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	empty.SetName(name)
	return empty
}

// condition returns an error unless a condition of the latest generation has this status and reason.
func condition(object client.Object, conditions []metav1.Condition, kind string, is metav1.ConditionStatus,
	reason string) error {
	found := meta.FindStatusCondition(conditions, kind)
	if found == nil || found.Status != is || found.Reason != reason ||
		found.ObservedGeneration != object.GetGeneration() {
		return fmt.Errorf("condition %s is %+v instead of %s, %s", kind, found, is, reason)
	}
	return nil
}

// patch changes an object by a JSON merge patch.
func (w *world) patch(t *testing.T, object client.Object, format string, arguments ...any) {
	t.Helper()
	if err := w.Patch(t.Context(), object,
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, arguments...))); err != nil {
		t.Fatal(err)
	}
}

// gone waits until an object does not exist.
func (w *world) gone(tb testing.TB, name string, object client.Object) {
	tb.Helper()
	w.await(tb, fmt.Sprintf("deletion of %T %s", object, name), named(object, name), func(ctx context.Context) error {
		err := w.Get(ctx, client.ObjectKey{Name: name}, object)
		if err == nil {
			return errors.New("it exists")
		}
		return client.IgnoreNotFound(err)
	})
}

// waitUntilIdle waits until the manager has written nothing for a while. The time is measured in reads of the API
// server, each after a pause, so that it scales with the speed of the computer.
func (w *world) waitUntilIdle(t *testing.T) {
	t.Helper()
	w.waitUntilQuiet(t, 2*time.Second)
}

// waitUntilQuiet is like waitUntilIdle, for a given time.
func (w *world) waitUntilQuiet(t *testing.T, length time.Duration) {
	t.Helper()
	const interval = 50 * time.Millisecond
	enough := int(length / interval)
	last, quiet := w.writes.Load(), 0
	err := wait.PollUntilContextTimeout(t.Context(), interval, pollTimeout, true,
		func(ctx context.Context) (bool, error) {
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
		t.Fatalf("the manager does not become idle: %d writes so far\n%s", last, w.describe(t, nil))
	}
}
