//go:build scale

package scale_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/operator"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
	"github.com/slurm-operator/slurm-operator/test/scale"
	"github.com/slurm-operator/slurm-operator/test/scale/simulated"
	"github.com/slurm-operator/slurm-operator/test/served"
)

var (
	idleFor = flag.Duration("rest", time.Minute, "how long an idle NodeSet is watched")
	changes = flag.Int("changes", 100, "how many nodes change in Slurm, one after another")
	updated = flag.Int("updated", 2000, "how many pods of a larger NodeSet are replaced, which takes longer than the rest")
)

const (
	clusterName = "slurm"
	keysName    = "keys"
	setName     = "worker"
	namespace   = corev1.NamespaceDefault
	// restAddress is the cluster IP of slurmrestd's Service, at which the in-memory Slurm answers.
	restAddress = "127.96.0.100"
)

func TestNodeSet(t *testing.T) {
	report := scale.NodeSetReport{Cores: runtime.NumCPU(), Nodes: *nodes}
	for _, pods := range podCounts(t) {
		var result scale.NodeSetResult
		passed := t.Run(fmt.Sprintf("StatefulSet of %d", pods), func(t *testing.T) {
			cluster := simulated.Start(t, simulated.Options{Nodes: *nodes})
			// their pod watch costs the same as with the NodeSet
			scale.SimulateSlurmds(t, cluster, slurmtest.New(t, slurmtest.Release2605))
			result.StatefulSet = scale.Measure(t, cluster,
				statefulSetWithService(cluster.Client, pods, slurmdTemplate(t)))
		}) && t.Run(fmt.Sprintf("NodeSet of %d", pods), func(t *testing.T) {
			cluster := simulated.Start(t, simulated.Options{Nodes: *nodes})
			report.Kubernetes = versionOf(t, cluster)
			newBench(t, cluster, pods, newController()).measure(t, &result)
		})
		if !passed {
			t.FailNow()
		}
		if err := result.CheckCosts(); err != nil {
			t.Error(err)
		}
		report.Results = append(report.Results, result)
	}
	section := ""
	if *docsTable != "" {
		section = "nodeset"
	}
	publish(t, report, "scale-nodeset.json", section)
}

// slurmdTemplate returns the pod template of the NodeSet.
func slurmdTemplate(t *testing.T) corev1.PodTemplateSpec {
	t.Helper()
	template, err := worker.Template(worker.Set{
		NodeSet: newNodeSet(1), Controller: newController(), Images: naming.Images{
			Repository: "slurm-operator", Tag: "26.05", Operator: "slurm-operator",
		},
		SlurmKey: *newController().Spec.SlurmKeyRef, ClusterDomain: "cluster.local",
	})
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(template.Labels, labels)
	template.Labels[slinkyv1beta1.LabelPodHostname] = setName
	return template
}

// newController returns a Controller for an external Slurm cluster.
func newController() *slinkyv1beta1.Controller {
	return &slinkyv1beta1.Controller{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName},
		Spec: slinkyv1beta1.ControllerSpec{
			External: true, ExternalConfig: &slinkyv1beta1.ExternalConfig{Host: "slurmctld.example.com"},
			SlurmKeyRef: &slinkyv1beta1.SecretKeyReference{Name: keysName, Key: slinkyv1beta1.SlurmKeyFile},
			JWTKeyRef:   &slinkyv1beta1.SecretKeyReference{Name: keysName, Key: slinkyv1beta1.JWTKeyFile},
		},
	}
}

// A bench is a simulated cluster with the operator, and an in-memory Slurm as its slurmctld.
type bench struct {
	client.Client
	cluster  *simulated.Cluster
	operator *scale.Operator
	slurm    *slurmtest.Server
	slurmds  *scale.Slurmds
	admin    slurm.Client
	pods     int
}

func newBench(t *testing.T, cluster *simulated.Cluster, pods int, controller *slinkyv1beta1.Controller) *bench {
	t.Helper()
	b := &bench{cluster: cluster, slurm: slurmtest.New(t, slurmtest.Release2605), pods: pods}
	key := []byte("a key that is not secret, because its cluster does not exist")
	b.slurm.SetKey(key)
	b.slurm.SetUptime(time.Hour) // of one that has just started, the operator expects less
	b.operator = scale.StartOperator(t, cluster)
	b.slurmds = scale.SimulateSlurmds(t, cluster, b.slurm)
	var err error
	if b.Client, err = client.New(cluster.Config, client.Options{Scheme: operator.Scheme()}); err != nil {
		t.Fatal(err)
	}
	b.slurm.Listen(t, net.JoinHostPort(restAddress, "6820"),
		served.Certificate(b.Client, client.ObjectKey{Namespace: namespace, Name: clusterName}))
	if b.admin, err = rest.New(rest.Options{URL: b.slurm.URL,
		Token: func(context.Context) (string, error) { return b.slurm.Token("root"), nil }}); err != nil {
		t.Fatal(err)
	}
	keys := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keysName},
		Data:       map[string][]byte{slinkyv1beta1.SlurmKeyFile: key, slinkyv1beta1.JWTKeyFile: key},
	}
	restAPI := &slinkyv1beta1.RestApi{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName},
		Spec:       slinkyv1beta1.RestApiSpec{ControllerRef: slinkyv1beta1.ObjectReference{Name: clusterName}},
	}
	restAPI.Spec.Service.Spec.Raw = fmt.Appendf(nil, `{"clusterIP": %q}`, restAddress)
	for _, object := range []client.Object{keys, controller, restAPI} {
		if err := b.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	b.until(t, "Slurm is reachable", func(ctx context.Context) (bool, error) {
		err := b.Get(ctx, client.ObjectKeyFromObject(controller), controller)
		return err == nil &&
			meta.IsStatusConditionTrue(controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable), err
	})
	return b
}

func (b *bench) until(t *testing.T, what string, is wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, scale.StepTimeout(b.pods), true,
		is); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// measure measures a NodeSet from creation to scale-in.
func (b *bench) measure(t *testing.T, result *scale.NodeSetResult) {
	t.Helper()
	result.Empty = b.idle(t)
	begin := b.meter(t)
	result.NodeSet = scale.Measure(t, b.cluster, scale.Workload{
		Kind: "NodeSet", Pods: b.pods, Selector: slinkyv1beta1.LabelPodHostname, Users: []string{scale.OperatorUser},
		Create:  func(ctx context.Context) error { return b.Create(ctx, newNodeSet(b.pods)) },
		Settled: func(ctx context.Context) (bool, error) { return b.settled(ctx, b.pods) },
		While: func() {
			result.Creation = begin.step(t, b.pods)
			t.Logf("%d requests to Slurm while creating, in %.0f s: %v", result.Creation.SlurmRequests,
				result.Creation.Seconds, countRequests(b.slurm.Requests()[begin.requests:]))
			result.Idle = b.idle(t)
			result.Reaction = b.reactions(t)
			result.Update = b.update(t, min(b.pods, *updated))
			b.quiet(t)
			begin = b.meter(t)
		},
		Delete: func(ctx context.Context) error { return b.patchSet(ctx, `{"spec":{"replicas":0}}`) },
	})
	result.ScaleIn = begin.step(t, b.pods)
	t.Logf("%d requests to Slurm while scaling in, in %.0f s: %v", result.ScaleIn.SlurmRequests, result.ScaleIn.Seconds,
		countRequests(b.slurm.Requests()[begin.requests:]))
	b.until(t, "the NodeSet has settled", func(ctx context.Context) (bool, error) { return b.settled(ctx, 0) })
	b.countEvents(t)
}

// countEvents checks that there are few events: less than one per fifty pods. It does not check small NodeSets, because
// a decision may be reported once a minute, however many pods it concerns.
func (b *bench) countEvents(t *testing.T) {
	t.Helper()
	recorded := &eventsv1.EventList{}
	if err := b.List(t.Context(), recorded, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	byReason := map[string]int{}
	for i := range recorded.Items {
		if event := &recorded.Items[i]; event.ReportingController == naming.ManagedBy {
			byReason[event.Regarding.Kind+" "+event.Reason]++
		}
	}
	total := 0
	for _, count := range byReason {
		total += count
	}
	t.Logf("%d events for %d pods: %v", total, b.pods, byReason)
	const minPods = 5000
	if b.pods >= minPods && total*50 >= b.pods {
		t.Errorf("%d events are too many for %d pods", total, b.pods)
	}
}

func newNodeSet(pods int) *slinkyv1beta1.NodeSet {
	return &slinkyv1beta1.NodeSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: setName},
		Spec: slinkyv1beta1.NodeSetSpec{
			ControllerRef: slinkyv1beta1.ObjectReference{Name: clusterName}, Replicas: new(int32(pods)),
			OversubscribeNode: true,
		},
	}
}

func (b *bench) patchSet(ctx context.Context, patch string) error {
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: setName}}
	return b.Patch(ctx, set, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func (b *bench) set(ctx context.Context) (*slinkyv1beta1.NodeSet, error) {
	set := &slinkyv1beta1.NodeSet{}
	return set, b.Get(ctx, client.ObjectKey{Namespace: namespace, Name: setName}, set)
}

// settled reports whether the NodeSet is ready with this many idle nodes, and all its pods show that.
func (b *bench) settled(ctx context.Context, pods int) (bool, error) {
	set, err := b.set(ctx)
	if err != nil {
		return false, err
	}
	ready := meta.FindStatusCondition(set.Status.Conditions, slinkyv1beta1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == set.Generation &&
		int(set.Status.SlurmIdle) == pods && int(set.Status.UpdatedReplicas) == pods &&
		b.slurmds.With(slinkyv1beta1.PodConditionType("Idle")) == pods, nil
}

// A meter is a reading of all counters at a time.
type meter struct {
	bench    *bench
	at       time.Time
	requests int
	bytes    int64
	cpu      time.Duration
}

func (b *bench) meter(t *testing.T) meter {
	t.Helper()
	return meter{
		bench: b, at: time.Now(), requests: len(b.slurm.Requests()), bytes: b.slurm.Sent(), cpu: b.operator.CPU(t),
	}
}

// step returns the usage since the reading, for a change of this many pods.
func (m meter) step(t *testing.T, pods int) scale.Step {
	t.Helper()
	now := m.bench.meter(t)
	updates := 0
	for _, request := range m.bench.slurm.Requests()[m.requests:now.requests] {
		if !strings.HasPrefix(request, http.MethodGet+" ") {
			updates++
		}
	}
	return scale.Step{
		Pods:          pods,
		Seconds:       now.at.Sub(m.at).Seconds(),
		Writes:        scale.WritesOf(m.bench.cluster.Writes(t, m.at), scale.OperatorUser),
		SlurmRequests: now.requests - m.requests,
		SlurmUpdates:  updates,
		SlurmBytes:    now.bytes - m.bytes,
		CPU:           (now.cpu - m.cpu).Seconds(),
	}
}

// countRequests counts requests by method and path.
func countRequests(requests []string) map[string]int {
	counts := map[string]int{}
	for _, request := range requests {
		path, _, _ := strings.Cut(request, "?")
		counts[path]++
	}
	return counts
}

// quiet waits until the operator has handled all changes, and polls Slurm no more often than when idle.
func (b *bench) quiet(t *testing.T) {
	t.Helper()
	const interval = 10 * time.Second // of its polls when idle
	window := min(2*interval, 2**idleFor)
	polls, since := b.polls(), time.Now()
	b.until(t, "the operator is idle", func(context.Context) (bool, error) {
		if time.Since(since) < window {
			return false, nil
		}
		before := polls
		polls, since = b.polls(), time.Now()
		return polls-before <= int(window/interval)+1, nil
	})
}

// polls returns how often the operator has polled Slurm so far.
func (b *bench) polls() int { return countRequests(b.slurm.Requests())["GET diag/"] }

// idle measures the operator while nothing happens except slurmds answering slurmctld's pings.
func (b *bench) idle(t *testing.T) scale.Idle {
	t.Helper()
	b.quiet(t)
	begin := b.meter(t)
	heartbeat := time.NewTicker(10 * time.Second)
	defer heartbeat.Stop()
	for end := time.After(*idleFor); end != nil; {
		select {
		case <-heartbeat.C:
			b.slurm.Heartbeat()
		case <-end:
			end = nil
		}
	}
	step := begin.step(t, b.pods)
	minutes := step.Seconds / 60
	writes := 0
	for _, write := range step.Writes {
		writes += write.Requests
		t.Logf("idle: %+v", write)
	}
	return scale.Idle{
		Writes: float64(writes) / minutes, SlurmRequests: float64(step.SlurmRequests) / minutes,
		SlurmBytes: float64(step.SlurmBytes) / minutes, CPU: step.CPU / minutes, Heap: b.operator.Heap(t),
	}
}

// reactions measures how long it takes until Kubernetes shows that an administrator has drained a Slurm node.
func (b *bench) reactions(t *testing.T) scale.Reaction {
	t.Helper()
	var reaction scale.Reaction
	var drained []string
	condition := slinkyv1beta1.PodConditionType("Drain")
	ctx, cancel := context.WithTimeout(t.Context(), scale.StepTimeout(b.pods))
	defer cancel()
	fail := func(doing string, err error) {
		if err != nil {
			t.Fatalf("%s: %v", doing, err)
		}
	}
	for i := range *changes {
		ordinal := i * b.pods / *changes
		node := naming.WorkerHost(newNodeSet(b.pods), ordinal)
		drained = append(drained, node)
		begin := time.Now()
		fail("draining a node", b.admin.UpdateNodes(ctx, []string{node}, slurm.NodeUpdate{
			State: slurm.Drain, Reason: "maintenance",
		}))
		fail("waiting for the pod's condition",
			b.slurmds.WaitForCondition(ctx, naming.WorkerPod(newNodeSet(b.pods), ordinal), condition))
		reaction.Pods = append(reaction.Pods, time.Since(begin).Seconds())
		fail("waiting for the status",
			wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
				set, err := b.set(ctx)
				return err == nil && int(set.Status.SlurmDrain) == len(drained), err
			}))
		reaction.Status = append(reaction.Status, time.Since(begin).Seconds())
	}
	fail("lifting the drains", b.admin.UpdateNodes(ctx, drained, slurm.NodeUpdate{State: slurm.Undrain}))
	b.until(t, "all drains are lifted", func(ctx context.Context) (bool, error) {
		set, err := b.set(ctx)
		return err == nil && set.Status.SlurmDrain == 0, err
	})
	return reaction
}

// update replaces this many pods, or more if the NodeSet is larger: those that are being replaced are not held back.
func (b *bench) update(t *testing.T, pods int) scale.Step {
	t.Helper()
	begin := b.meter(t)
	if err := b.patchSet(t.Context(), `{"spec":{"slurmd":{"env":[{"name":"REVISION","value":"2"}]}}}`); err != nil {
		t.Fatal(err)
	}
	b.until(t, "the pods are updated", func(ctx context.Context) (bool, error) {
		set, err := b.set(ctx)
		return int(set.Status.UpdatedReplicas) >= pods && set.Status.ObservedGeneration == set.Generation, err
	})
	if pods < b.pods {
		if err := b.patchSet(t.Context(), `{"spec":{"updateStrategy":{"type":"OnDelete"}}}`); err != nil {
			t.Fatal(err)
		}
	}
	var replaced int
	b.until(t, "all nodes are idle", func(ctx context.Context) (bool, error) {
		set, err := b.set(ctx)
		replaced = int(set.Status.UpdatedReplicas)
		return int(set.Status.SlurmIdle) == b.pods && set.Status.ObservedGeneration == set.Generation &&
			b.slurmds.With(slinkyv1beta1.PodConditionType("Idle")) == b.pods, err
	})
	return begin.step(t, replaced)
}
