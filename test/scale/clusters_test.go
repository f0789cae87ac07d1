//go:build scale

package scale_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/operator"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
	"github.com/slurm-operator/slurm-operator/test/scale"
	"github.com/slurm-operator/slurm-operator/test/scale/simulated"
	"github.com/slurm-operator/slurm-operator/test/served"
)

var clusterCounts = flag.String("clusters", "50,200", "the numbers of Slurm clusters to measure, separated by commas")

// podsOfCluster is the size of the NodeSet of each Slurm cluster.
const podsOfCluster = 2

// TestClusters measures one operator with many small Slurm clusters: a Controller, a RestApi and a NodeSet of two pods
// each.
func TestClusters(t *testing.T) {
	report := scale.ClustersReport{Cores: runtime.NumCPU(), Nodes: *nodes}
	for _, count := range numbers(t, "clusters", *clusterCounts) {
		if !t.Run(fmt.Sprintf("%d clusters", count), func(t *testing.T) {
			cluster := simulated.Start(t, simulated.Options{Nodes: *nodes})
			report.Kubernetes = versionOf(t, cluster)
			report.Results = append(report.Results, newFleet(t, cluster, count).measure(t))
		}) {
			t.FailNow()
		}
	}
	section := ""
	if *docsTable != "" {
		section = "clusters"
	}
	publish(t, report, "scale-clusters.json", section)
}

// A fleet is many Slurm clusters under one operator.
type fleet struct {
	client.Client
	cluster  *simulated.Cluster
	operator *scale.Operator
	slurmds  *scale.Slurmds
	servers  []*slurmtest.Server
}

func fleetName(index int) string { return fmt.Sprintf("c%d", index) }

func newFleet(t *testing.T, cluster *simulated.Cluster, count int) *fleet {
	t.Helper()
	f := &fleet{cluster: cluster, operator: scale.StartOperator(t, cluster)}
	var err error
	if f.Client, err = client.New(cluster.Config, client.Options{Scheme: operator.Scheme()}); err != nil {
		t.Fatal(err)
	}
	byName := map[string]*slurmtest.Server{}
	for i := range count {
		server := slurmtest.New(t, slurmtest.Release2605)
		server.SetKey(fleetSecret)
		server.Listen(t, net.JoinHostPort(fleetAddress(i), "6820"),
			served.Certificate(f.Client, fleetKey(i)))
		f.servers = append(f.servers, server)
		byName[fleetName(i)] = server
	}
	f.slurmds = scale.SimulateSlurmdsOf(t, cluster, func(pod *corev1.Pod) *slurmtest.Server {
		return byName[pod.Labels[naming.LabelController]]
	})
	return f
}

var fleetSecret = []byte("a key that is not secret, because its cluster does not exist")

// fleetKey returns the namespace and name of a cluster. Each has its own namespace.
func fleetKey(index int) client.ObjectKey {
	return client.ObjectKey{Namespace: fleetName(index), Name: fleetName(index)}
}

// fleetAddress returns the cluster IP of a slurmrestd.
func fleetAddress(index int) string { return fmt.Sprintf("127.96.%d.%d", 16+index/200, 10+index%200) }

// measure creates all clusters, and measures the operator while they are idle, when it restarts, and when some of
// them are sick.
func (f *fleet) measure(t *testing.T) scale.ClustersResult {
	t.Helper()
	result := scale.ClustersResult{Clusters: len(f.servers), EmptyHeap: f.operator.Heap(t)}
	begin, cpu := time.Now(), f.operator.CPU(t)
	f.create(t)
	f.until(t, "all clusters are ready", f.ready)
	result.Started, result.StartedCPU = time.Since(begin).Seconds(), (f.operator.CPU(t) - cpu).Seconds()
	f.quiet(t)
	result.Idle = f.idle(t)
	result.Restarted, result.RestartedCPU = f.restart(t)
	f.quiet(t)
	result.Reaction = f.reactions(t, 1)
	f.sicken(t)
	result.BesideSick = f.reactions(t, 0)
	if mean(result.BesideSick) > 2*mean(result.Reaction)+1 {
		t.Errorf("a change shows after %.1f s while some clusters are sick, and after %.1f s otherwise",
			mean(result.BesideSick), mean(result.Reaction))
	}
	return result
}

// lasting are the faults of the first clusters of a sick fleet. The one after them fails every other second.
var lasting = []slurmtest.Responder{
	slurmtest.Hang, slurmtest.Drip, slurmtest.Truncated("{"), slurmtest.Answer(http.StatusOK, "null"),
}

// sicken makes some clusters sick until the test ends, and waits until the operator has noticed.
func (f *fleet) sicken(t *testing.T) {
	t.Helper()
	for i, respond := range lasting {
		f.servers[i].Inject(slurmtest.Fault{Respond: respond})
	}
	ctx, stop := context.WithCancel(t.Context())
	var flapping sync.WaitGroup
	flapping.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			f.servers[len(lasting)].Inject(slurmtest.Fault{Respond: slurmtest.Reset})
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			f.servers[len(lasting)].ClearFaults()
		}, time.Second)
	})
	t.Cleanup(func() {
		stop()
		flapping.Wait()
	})
	f.until(t, "the sick clusters are unreachable", func(ctx context.Context) (bool, error) {
		for i := range lasting {
			controller := &slinkyv1beta1.Controller{}
			if err := f.Get(ctx, fleetKey(i), controller); err != nil ||
				!meta.IsStatusConditionFalse(controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable) {
				return false, err
			}
		}
		return true, nil
	})
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum / float64(max(len(values), 1))
}

func (f *fleet) until(t *testing.T, what string, is wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond,
		scale.StepTimeout(podsOfCluster*len(f.servers)), true, is); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// create creates the objects of all clusters.
func (f *fleet) create(t *testing.T) {
	t.Helper()
	indices := make(chan int)
	var creators sync.WaitGroup
	for range 8 {
		creators.Go(func() {
			for i := range indices {
				for _, object := range fleetObjects(i) {
					if err := f.Create(t.Context(), object); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for i := range f.servers {
		indices <- i
	}
	close(indices)
	creators.Wait()
}

// fleetObjects returns the objects of a cluster, in the order of their creation.
func fleetObjects(index int) []client.Object {
	name := fleetName(index)
	keys := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: keysName},
		Data:       map[string][]byte{slinkyv1beta1.SlurmKeyFile: fleetSecret, slinkyv1beta1.JWTKeyFile: fleetSecret},
	}
	controller := newController()
	controller.Namespace, controller.Name = name, name
	restAPI := &slinkyv1beta1.RestApi{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name},
		Spec:       slinkyv1beta1.RestApiSpec{ControllerRef: slinkyv1beta1.ObjectReference{Name: name}},
	}
	restAPI.Spec.Service.Spec.Raw = fmt.Appendf(nil, `{"clusterIP": %q}`, fleetAddress(index))
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, keys, controller, restAPI, fleetSet(index),
	}
}

func fleetSet(index int) *slinkyv1beta1.NodeSet {
	set := newNodeSet(podsOfCluster)
	set.Namespace, set.Name, set.Spec.ControllerRef.Name = fleetName(index), fleetName(index), fleetName(index)
	return set
}

// ready reports whether all NodeSets are ready, with idle Slurm nodes.
func (f *fleet) ready(ctx context.Context) (bool, error) {
	sets := &slinkyv1beta1.NodeSetList{}
	if err := f.List(ctx, sets); err != nil {
		return false, err
	}
	ready := 0
	for i := range sets.Items {
		if sets.Items[i].Status.SlurmIdle == podsOfCluster &&
			meta.IsStatusConditionTrue(sets.Items[i].Status.Conditions, slinkyv1beta1.ConditionReady) {
			ready++
		}
	}
	return ready == len(f.servers), nil
}

// count returns the requests to all Slurm clusters so far, their bytes, and how often each was polled.
func (f *fleet) count() (requests int, bytes int64, polls []int) {
	for _, server := range f.servers {
		all := server.Requests()
		requests += len(all)
		bytes += server.Sent()
		polls = append(polls, countRequests(all)["GET diag/"])
	}
	return requests, bytes, polls
}

// quiet waits until no cluster is polled more often than when idle.
func (f *fleet) quiet(t *testing.T) {
	t.Helper()
	const interval = 10 * time.Second // of polls when idle
	_, _, polls := f.count()
	since := time.Now()
	f.until(t, "the operator is idle", func(context.Context) (bool, error) {
		if time.Since(since) < 2*interval {
			return false, nil
		}
		before := polls
		_, _, polls = f.count()
		since = time.Now()
		for i := range polls {
			if polls[i]-before[i] > 3 {
				return false, nil
			}
		}
		return true, nil
	})
}

// idle measures the operator while nothing happens.
func (f *fleet) idle(t *testing.T) scale.Idle {
	t.Helper()
	begin, cpu := time.Now(), f.operator.CPU(t)
	requests, bytes, _ := f.count()
	time.Sleep(*idleFor)
	minutes := time.Since(begin).Minutes()
	requestsNow, bytesNow, _ := f.count()
	writes := 0
	for _, write := range scale.WritesOf(f.cluster.Writes(t, begin), scale.OperatorUser) {
		writes += write.Requests
		t.Logf("idle: %+v", write)
	}
	return scale.Idle{
		Writes: float64(writes) / minutes, SlurmRequests: float64(requestsNow-requests) / minutes,
		SlurmBytes: float64(bytesNow-bytes) / minutes, CPU: (f.operator.CPU(t) - cpu).Seconds() / minutes,
		Heap: f.operator.Heap(t),
	}
}

// restart restarts the operator, and returns after how many seconds it has read all clusters, and the CPU seconds that
// this took.
func (f *fleet) restart(t *testing.T) (seconds, cpu float64) {
	t.Helper()
	var before []int
	for _, server := range f.servers {
		before = append(before, len(server.Requests()))
	}
	begin := time.Now()
	f.operator.Restart(t)
	f.until(t, "all clusters are read", func(context.Context) (bool, error) {
		return !slices.ContainsFunc(f.servers, func(server *slurmtest.Server) bool {
			requests := server.Requests()[before[slices.Index(f.servers, server)]:]
			return !slices.ContainsFunc(requests, func(request string) bool { return strings.HasPrefix(request, "GET nodes/") })
		}), nil
	})
	return time.Since(begin).Seconds(), f.operator.CPU(t).Seconds()
}

// reactions measures how long it takes until a pod shows that an administrator has drained its Slurm node, in some
// healthy clusters one after another. All of them are idle, so that the next poll may be ten seconds away.
func (f *fleet) reactions(t *testing.T, ordinal int) []float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scale.StepTimeout(podsOfCluster*len(f.servers)))
	defer cancel()
	var seconds []float64
	for i := range min(*changes, 10) {
		index := len(lasting) + 1 + i*(len(f.servers)-len(lasting)-1)/10
		admin, err := rest.New(rest.Options{URL: f.servers[index].URL,
			Token: func(context.Context) (string, error) { return f.servers[index].Token("root"), nil }})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		err = admin.UpdateNodes(ctx, []string{naming.WorkerHost(fleetSet(index), ordinal)}, slurm.NodeUpdate{
			State: slurm.Drain, Reason: "maintenance",
		})
		admin.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := f.slurmds.WaitForCondition(ctx, naming.WorkerPod(fleetSet(index), ordinal),
			slinkyv1beta1.PodConditionType("Drain")); err != nil {
			t.Fatal(err)
		}
		seconds = append(seconds, time.Since(begin).Seconds())
	}
	return seconds
}
